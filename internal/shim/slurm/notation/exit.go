package notation

import (
	"fmt"
	"strconv"
	"strings"
)

// An ExitCode describes how a process ended: with a status, or killed by a signal. The zero value is success.
type ExitCode struct{ Status, Signal int }

// String formats the code like Slurm: "7:0", "0:9".
func (c ExitCode) String() string { return strconv.Itoa(c.Status) + ":" + strconv.Itoa(c.Signal) }

// ParseExitCode parses the result of String.
func ParseExitCode(text string) (ExitCode, error) {
	status, signal, ok := strings.Cut(text, ":")
	c := ExitCode{}
	var err, err2 error
	c.Status, err = strconv.Atoi(status)
	c.Signal, err2 = strconv.Atoi(signal)
	if !ok || err != nil || err2 != nil || c.Status < 0 || c.Signal < 0 || c.Status > 255 || c.Signal > 127 {
		return ExitCode{}, fmt.Errorf("invalid exit code %q", text)
	}
	return c, nil
}
