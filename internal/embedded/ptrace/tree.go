package ptrace

import (
	"time"

	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// A tree describes the known processes of a trace and their threads. It receives events in the order in which the
// kernel reports them, and has no side effects.
//
// A thread becomes known by its first stop or by the event of its creator, whichever is reported first. If a SIGKILL
// arrives at the wrong moment, either may be missing.
type tree struct {
	threads map[int]*thread  // :: tid → a thread that has not ended
	procs   map[int]*process // :: pid → a process that has not ended
	untold  map[int]*process // :: pid → a process that has ended before the event of its creator
	all     []*process
	more    int // processes beyond the limit of all
}

// maxProcesses limits the number of processes that a trace lists.
const maxProcesses = 100_000

// A thread is a traced thread.
type thread struct {
	tid     int
	of      *process
	exiting bool
	call    *call // the call that it is in and whose end matters; nil: none
	moves   moves // the transfer of that call
}

// A process is a traced process, with its entry for the trace.
type process struct {
	trace.Process
	told     bool // the event of its creator has been received
	borrowed bool // it uses its parent's memory until it executes a program: vfork
	live     int  // threads that are not about to end
}

func newTree() *tree {
	return &tree{threads: map[int]*thread{}, procs: map[int]*process{}, untold: map[int]*process{}}
}

// begin adds a process with its first thread. The process was created by parent; 0: not yet known.
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

// told records that a process reports the fork of another, which may already be known or even have ended.
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

// executed records that a thread of a process, with the id former, has executed a program. The thread now has the
// process's id and is the only thread of the process. The ends of the other listed threads of the process will be
// reported, except for the thread whose id it now has.
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

// endOthers marks all threads of a process as about to end.
func (t *tree) endOthers(p *process) {
	for _, th := range t.threads {
		if th.of == p {
			th.exiting, th.call = true, nil
		}
	}
}

// leaving records that a thread is about to end, and reports whether it is the last one of its process.
func (t *tree) leaving(th *thread) (last bool) {
	if th.exiting {
		return false
	}
	th.exiting, th.call = true, nil
	th.of.live--
	return th.of.live == 0
}

// ended removes a thread that has ended, and returns its process if that has also ended. The process has ended if the
// thread has the process's own id, because that thread is reported as the last one.
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
	for id, q := range t.untold { // an ended process reports no more events
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
