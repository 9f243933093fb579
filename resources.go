package corral

import (
	"fmt"
	"strings"
)

// Resources are the requirements of a task on one host, or the supply of a host. Workflows, matching and plans share
// this type, so that a plan contains no task that matching would refuse.
type Resources struct {
	CPUs      int `json:"cpus"`
	MemoryMiB int `json:"memory_mib,omitempty"`
	GPUs      int `json:"gpus,omitempty"`
	DiskMiB   int `json:"disk_mib,omitempty"`
}

// Unlimited is the supply of a host in a component without a known limit, so that the host refuses no task because of
// it. Its value, 2³⁰, is more than any task may request.
const Unlimited = 1 << 30

// FitIn reports whether a host with this room meets the requirements.
func (r Resources) FitIn(room Resources) bool {
	return r.CPUs <= room.CPUs && r.MemoryMiB <= room.MemoryMiB && r.GPUs <= room.GPUs && r.DiskMiB <= room.DiskMiB
}

// Plus returns the sum, component by component.
func (r Resources) Plus(s Resources) Resources {
	return Resources{r.CPUs + s.CPUs, r.MemoryMiB + s.MemoryMiB, r.GPUs + s.GPUs, r.DiskMiB + s.DiskMiB}
}

// Minus returns the difference, component by component.
func (r Resources) Minus(s Resources) Resources {
	return Resources{r.CPUs - s.CPUs, r.MemoryMiB - s.MemoryMiB, r.GPUs - s.GPUs, r.DiskMiB - s.DiskMiB}
}

// Most returns the component-wise maximum.
func (r Resources) Most(s Resources) Resources {
	return Resources{max(r.CPUs, s.CPUs), max(r.MemoryMiB, s.MemoryMiB), max(r.GPUs, s.GPUs), max(r.DiskMiB, s.DiskMiB)}
}

// String names the components that are not zero: "4 cpus, 2048 MiB of memory, 1 gpu".
func (r Resources) String() string {
	said := []string{counted(r.CPUs, "cpu")}
	if r.MemoryMiB != 0 {
		said = append(said, fmt.Sprintf("%d MiB of memory", r.MemoryMiB))
	}
	if r.GPUs != 0 {
		said = append(said, counted(r.GPUs, "gpu"))
	}
	if r.DiskMiB != 0 {
		said = append(said, fmt.Sprintf("%d MiB of disk", r.DiskMiB))
	}
	return strings.Join(said, ", ")
}

// counted formats a number with its noun, to which a plural s is added unless n is 1.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
