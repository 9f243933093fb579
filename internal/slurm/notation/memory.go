package notation

import (
	"errors"
	"strconv"
	"strings"
)

// ErrMemory is a size that Slurm cannot read.
var ErrMemory = errors.New("invalid memory specification")

// ParseMemory reads a size in MiB, or with a unit: 500, 500M, 2G, 1048576K, 1T. A part of a MiB counts as a whole one,
// and 0 stands for all that a node has.
func ParseMemory(text string) (mib int64, err error) {
	text = strings.TrimPrefix(strings.TrimLeft(text, " "), "+")
	digits := strings.TrimRight(text, "kKmMgGtTbB")
	n, ok := number(digits)
	if !ok || n >= 1<<33 {
		return 0, ErrMemory
	}
	switch strings.ToUpper(text[len(digits):]) {
	case "K", "KB":
		return (n + 1023) / 1024, nil
	case "", "M", "MB":
		return n, nil
	case "G", "GB":
		return n << 10, nil
	case "T", "TB":
		return n << 20, nil
	}
	return 0, ErrMemory
}

// Memory writes MiB with the largest unit that needs no fraction, as squeue and sacct do: 100M, 2G.
func Memory(mib int64) string {
	unit := 0
	for mib != 0 && mib%1024 == 0 && unit < 2 {
		mib, unit = mib/1024, unit+1
	}
	return strconv.FormatInt(mib, 10) + "MGT"[unit:unit+1]
}
