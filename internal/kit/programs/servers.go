package programs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

var (
	htcondor = sync.OnceValues(func() (string, error) { return setUp("htcondor") })
	peers    = sync.OnceValues(func() (string, error) { return setUp("peers") })
)

// HTCondor returns the folder of a real HTCondor, which scripts/htcondor downloads and unpacks on first use.
func HTCondor() (dir string, err error) { return htcondor() }

// Peers returns the folder of other projects' programs, which scripts/peers downloads and unpacks on first use.
func Peers() (dir string, err error) { return peers() }

// setUp runs a script that prints the folder that it has filled.
func setUp(script string) (dir string, err error) {
	top, err := Root()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(top, "scripts", script))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("scripts/%s: %w", script, err)
	}
	return string(bytes.TrimSpace(out)), nil
}

// Unprivileged returns the user that root runs HTCondor's daemons as in tests, because HTCondor starts no jobs of root.
// The user exists on every Debian system. If the test does not run as root, Unprivileged returns "": the daemons then
// run as the test's own user.
func Unprivileged() (user string) {
	if os.Getuid() == 0 {
		return "nobody"
	}
	return ""
}
