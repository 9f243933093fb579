package dagman

import (
	"math"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman/submit"
)

// needs sets the task's needs from the job's resource requests.
func (m *maker) needs() {
	m.t.CPUs = m.count("request_cpus", 1, workflow.MaxCPUs)
	m.t.GPUs = m.count("request_gpus", 0, math.MaxInt32)
	m.t.MemoryMiB = m.size("request_memory", submit.MiB)
	m.t.DiskMiB = m.size("request_disk", submit.KiB)
}

// count returns a requested number; expressions are ignored, with a warning.
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

// size returns a requested size in MiB, rounded up; a number without a unit letter is a multiple of unit.
func (m *maker) size(name string, unit float64) int {
	value := m.value(name)
	if value == "" || strings.EqualFold(value, "undefined") {
		return 0
	}
	bytes, ok := submit.Bytes(value, unit)
	if !ok {
		m.note(name, "the expression %.60s is not evaluated", value)
		return 0
	}
	n := math.Ceil(bytes / submit.MiB)
	if n < 0 || n > math.MaxInt32 {
		m.wrong("%s is %.40s, which is negative or too large", name, value)
		return 0
	}
	return int(n)
}
