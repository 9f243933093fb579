package executor

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/cgroup"
)

// groupAfter is the time for which a task runs before it is moved to a control group of its own. The move takes a
// millisecond, as long as the shortest tasks run; for such tasks, a group would add nothing to the kernel's own
// accounting.
const groupAfter = 100 * time.Millisecond

// groupLeast is the minimum memory of a group, in bytes: the kernel also charges the group for its own memory to run
// the processes, and for cached pages of files that they use.
const groupLeast = 16 << 20

// MeasureBy makes the executor put long-running tasks into control groups below parent, which Close closes.
func (x *Executor) MeasureBy(parent *cgroup.Parent) { x.groups = parent }

// grouped waits for a process, which is moved to a group if it runs long enough. The group may use the given memory, in
// bytes; 0: any amount.
func (x *Executor) grouped(p *process, memory int64) (end ending) {
	if x.groups == nil {
		return p.wait()
	}
	later := time.AfterFunc(groupAfter, func() { p.join(x.groups, memory) })
	end = p.wait()
	later.Stop()
	if p.group != nil { // nothing joins a process that has ended
		end.refused = p.group.Refused()
		addGroup(&end.used, p.group.Usage(), x.groups.Version())
		p.group.Remove()
	}
	return end
}

// join moves the process and its descendants to a group, unless it has ended. If that fails, only the kernel's
// accounting at the end of the process is available.
func (p *process) join(parent *cgroup.Parent, memory int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		if memory > 0 {
			memory = max(memory, groupLeast)
		}
		p.group, _ = parent.Take(p.pid, memory)
	}
}

// refused reports whether the kernel has killed a process of the group because the group reached its memory limit.
func (p *process) refused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.group != nil && p.group.Refused()
}

// addGroup adds the values that only a group measures: CPU time of processes that were not waited for, and the memory
// of all processes together.
func addGroup(u *execution.Usage, g cgroup.Usage, version int) {
	u.UserCPU += max(0, g.CPU-u.UserCPU-u.SysCPU)
	u.MaxRSSKiB = max(u.MaxRSSKiB, g.MemoryBytes>>10)
	u.MeasuredBy += execution.Source(fmt.Sprintf("+cgroup%d", version))
}
