package ptrace

import (
	"time"

	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// A tree is what is known of the processes of a trace and of their threads. It is told of events in whichever order the
// kernel tells of them, and does nothing itself.
//
// A thread becomes known by its first stop or by the event of the one that made it, whichever comes first. With a
// SIGKILL at the wrong moment either may be missing.
type tree struct {
	threads map[int]*thread  // :: tid → one that has not ended
	procs   map[int]*process // :: pid → one that has not ended
	untold  map[int]*process // :: pid → one that has ended before the event of the one that made it
	all     []*process
	more    int // processes for which all has no room
}

// maxProcesses is how many processes a trace lists.
const maxProcesses = 100_000

// A thread is one that is traced.
type thread struct {
	tid     int
	of      *process
	exiting bool
	call    *call // that it is in the middle of, whose end is waited for; nil: none
	moves   moves // what that call moves, and where
}

// A process is one that is traced, with what its trace will say of it.
type process struct {
	trace.Process
	told     bool // the one that made it has told of it
	borrowed bool // it uses its parent's memory until it executes a program: vfork
	live     int  // threads that are not about to end
}

func newTree() *tree {
	return &tree{threads: map[int]*thread{}, procs: map[int]*process{}, untold: map[int]*process{}}
}

// begin adds a process with its first thread, which parent made; 0: not known yet.
func (t *tree) begin(pid, parent int, at time.Duration) *process {
	p := &process{Process: trace.Process{ID: pid, Parent: parent, Start: at, Threads: 1}, live: 1}
	t.procs[pid] = p
	t.threads[pid] = &thread{tid: pid, of: p}
	if len(t.all) < maxProcesses {
		t.all = append(t.all, p)
	} else {
		t.more++
	}
	return p
}

// join adds a thread to a process.
func (t *tree) join(p *process, tid int) *thread {
	th := &thread{tid: tid, of: p}
	t.threads[tid] = th
	p.Threads++
	p.live++
	return th
}

// told notes that a process says it has forked another, which may be known already, or even have ended.
func (t *tree) told(parent *process, pid int, borrowed bool, at time.Duration) {
	p := t.procs[pid]
	if p == nil || p.told {
		if p = t.untold[pid]; p != nil {
			delete(t.untold, pid)
		} else {
			p = t.begin(pid, parent.ID, at)
		}
	}
	p.told, p.Parent, p.borrowed = true, parent.ID, borrowed && p.Execs == 0
}

// executed notes that a thread of a process, which was called former, has executed a program. It has the process's id
// now and is its only thread. Of the process's others those that are still listed will be told of as they end; the one
// whose id it has taken will not.
func (t *tree) executed(pid, former int, at time.Duration) *process {
	p := t.procs[pid]
	if p == nil {
		p = t.begin(pid, 0, at)
	}
	th := &thread{tid: pid, of: p}
	if old := t.threads[former]; old != nil {
		th.call, th.moves = old.call, old.moves
	}
	delete(t.threads, former)
	if p.live > 1 {
		t.endOthers(p)
	}
	t.threads[pid] = th
	p.live, p.borrowed = 1, false
	p.Execs++
	return p
}

// endOthers takes all threads of a process for such as are about to end.
func (t *tree) endOthers(p *process) {
	for _, th := range t.threads {
		if th.of == p {
			th.exiting, th.call = true, nil
		}
	}
}

// leaving notes that a thread is about to end, and reports whether it is the last one of its process.
func (t *tree) leaving(th *thread) (last bool) {
	if th.exiting {
		return false
	}
	th.exiting, th.call = true, nil
	th.of.live--
	return th.of.live == 0
}

// ended forgets a thread that has ended, and returns its process if that has ended with it: which is told by the thread
// with the process's own id, the last to end.
func (t *tree) ended(tid int, at time.Duration) *process {
	th := t.threads[tid]
	if th == nil {
		return nil
	}
	delete(t.threads, tid)
	if !th.exiting {
		th.of.live--
	}
	p := t.procs[tid]
	if p == nil {
		return nil
	}
	delete(t.procs, tid)
	p.End = at
	if !p.told {
		t.untold[tid] = p
	}
	for id, q := range t.untold { // whoever has ended tells nothing any more
		if q.Parent == p.ID {
			delete(t.untold, id)
		}
	}
	return p
}

// list returns the processes for a trace.
func (t *tree) list() (all []trace.Process, more int) {
	all = make([]trace.Process, len(t.all))
	for i, p := range t.all {
		all[i] = p.Process
	}
	return all, t.more
}
