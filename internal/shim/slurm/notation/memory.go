package notation

import (
	"errors"
	"strconv"
	"strings"
)

// ErrMemory is Slurm's error for an invalid size.
var ErrMemory = errors.New("invalid memory specification")

// ParseMemory parses a size in MiB, or with a unit: 500, 500M, 2G, 1048576K, 1T. A fraction of a MiB is rounded up, and
// 0 means the whole memory of a node.
func ParseMemory(text string) (mib int64, err error) {
	text = strings.TrimPrefix(strings.TrimLeft(text, " "), "+")
	digits := strings.TrimRight(text, "kKmMgGtTbB")
	n, ok := number(digits)
	switch strings.ToUpper(text[len(digits):]) {
	case "K", "KB":
		n = (n + 1023) / 1024
	case "", "M", "MB":
	case "G", "GB":
		n <<= 10
	case "T", "TB":
		n <<= 20
	default:
		ok = false
	}
	if !ok || n > maxMemory {
		return 0, ErrMemory
	}
	return n, nil
}

// maxMemory is an upper limit, in MiB, beyond any real memory.
const maxMemory = 1 << 37

// Memory formats MiB with the largest unit without a fraction, like squeue and sacct: 100M, 2G.
func Memory(mib int64) string {
	unit := 0
	for mib != 0 && mib%1024 == 0 && unit < 2 {
		mib, unit = mib/1024, unit+1
	}
	return strconv.FormatInt(mib, 10) + "MGT"[unit:unit+1]
}
