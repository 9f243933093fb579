package executor

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/internal/cgroup"
	"github.com/corral-pilot/corral/internal/execution"
)

// groupAfter is how long a task runs before it is put into a control group of its own. That takes a millisecond, which
// is as much as the shortest tasks have; and of those a group would tell nothing that the kernel does not tell anyway.
const groupAfter = 100 * time.Millisecond

// MeasureBy has the executor put tasks that run for long into control groups below parent, which Close closes.
func (x *Executor) MeasureBy(parent *cgroup.Parent) { x.groups = parent }

// grouped waits for a process, which is in a group meanwhile once it has run for long.
func (x *Executor) grouped(p *process) (end ending) {
	if x.groups == nil {
		return p.wait()
	}
	later := time.AfterFunc(groupAfter, func() { p.join(x.groups) })
	end = p.wait()
	later.Stop()
	if p.group != nil { // nothing joins a process that is gone
		addGroup(&end.used, p.group.Usage(), x.groups.Version())
		p.group.Remove()
	}
	return end
}

// join puts the process, unless it is gone, and its descendants into a group. Without one, what the kernel tells at its
// end has to do.
func (p *process) join(parent *cgroup.Parent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		p.group, _ = parent.Take(p.pid)
	}
}

// addGroup adds what only a group tells: cpu time of processes that nobody waited for, and memory of all together.
func addGroup(u *execution.Usage, g cgroup.Usage, version int) {
	u.UserCPU += max(0, g.CPU-u.UserCPU-u.SysCPU)
	u.MaxRSSKiB = max(u.MaxRSSKiB, g.MemoryBytes>>10)
	u.MeasuredBy += execution.Source(fmt.Sprintf("+cgroup%d", version))
}
