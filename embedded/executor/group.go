package executor

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/cgroup"
)

// groupAfter is how long a task runs before it is put into a control group of its own. That takes a millisecond, which
// is as much as the shortest tasks have; and of those a group would tell nothing that the kernel does not tell anyway.
const groupAfter = 100 * time.Millisecond

// groupLeast is the least memory that a group is given, in bytes: the kernel counts there what it needs itself to run
// the processes, and the pages of files that they use just now.
const groupLeast = 16 << 20

// MeasureBy has the executor put tasks that run for long into control groups below parent, which Close closes.
func (x *Executor) MeasureBy(parent *cgroup.Parent) { x.groups = parent }

// grouped waits for a process, which is in a group meanwhile once it has run for long. There it may have this much
// memory; 0: any amount.
func (x *Executor) grouped(p *process, memory int64) (end ending) {
	if x.groups == nil {
		return p.wait()
	}
	later := time.AfterFunc(groupAfter, func() { p.join(x.groups, memory) })
	end = p.wait()
	later.Stop()
	if p.group != nil { // nothing joins a process that is gone
		end.refused = p.group.Refused()
		addGroup(&end.used, p.group.Usage(), x.groups.Version())
		p.group.Remove()
	}
	return end
}

// join puts the process, unless it is gone, and its descendants into a group. Without one, what the kernel tells at its
// end has to do.
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

// refused reports whether the kernel has killed a process of the group rather than give it more memory.
func (p *process) refused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.group != nil && p.group.Refused()
}

// addGroup adds what only a group tells: cpu time of processes that nobody waited for, and memory of all together.
func addGroup(u *execution.Usage, g cgroup.Usage, version int) {
	u.UserCPU += max(0, g.CPU-u.UserCPU-u.SysCPU)
	u.MaxRSSKiB = max(u.MaxRSSKiB, g.MemoryBytes>>10)
	u.MeasuredBy += execution.Source(fmt.Sprintf("+cgroup%d", version))
}
