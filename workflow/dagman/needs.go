package dagman

import (
	"math"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/workflow"
)

// needs reads what the job requests.
func (m *maker) needs() {
	m.t.CPUs = m.count("request_cpus", 1, workflow.MaxCPUs)
	m.t.GPUs = m.count("request_gpus", 0, math.MaxInt32)
	m.t.MemoryMiB = m.size("request_memory", mib)
	m.t.DiskMiB = m.size("request_disk", kib)
}

// count is a request of a number; an expression is passed over.
func (m *maker) count(name string, least, most int) int {
	value := m.value(name)
	n, err := strconv.Atoi(value)
	switch {
	case value == "" || strings.EqualFold(value, "undefined"):
		return least
	case err != nil:
		m.note(name, "the expression %.60s is not evaluated", value)
		return least
	case n < least || n > most:
		m.wrong("%s is %d, want %d to %d", name, n, least, most)
	}
	return n
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// size is a request in MiB, rounded up; without a letter behind it the number counts units.
func (m *maker) size(name string, unit float64) int {
	value := m.value(name)
	if value == "" || strings.EqualFold(value, "undefined") {
		return 0
	}
	bytes, ok := sizeOf(value, unit)
	if !ok {
		m.note(name, "the expression %.60s is not evaluated", value)
		return 0
	}
	n := math.Ceil(bytes / mib)
	if n < 0 || n > math.MaxInt32 {
		m.wrong("%s is %.40s, which is negative or too large", name, value)
		return 0
	}
	return int(n)
}

// sizeOf reads a number and the letter of its unit: B, K, M, G or T, with or without another B.
func sizeOf(text string, unit float64) (bytes float64, ok bool) {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	switch strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(text[end:])), "B") {
	case "":
		if strings.EqualFold(strings.TrimSpace(text[end:]), "B") {
			unit = 1
		}
	case "K":
		unit = kib
	case "M":
		unit = mib
	case "G":
		unit = mib * kib
	case "T":
		unit = mib * mib
	default:
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text[:end]), 64)
	return n * unit, err == nil
}
