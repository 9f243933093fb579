package executor

import (
	"cmp"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/proc"
)

// A memoryLimit is how much memory the processes of a task may have together.
type memoryLimit struct {
	mib   int  // 0: any amount
	asked bool // by the task; else it is a share of its worker's
}

func (l memoryLimit) bytes() int64 { return int64(l.mib) << 20 }

// why says that a task had used bytes of memory when it was killed, or, if that is not more than the limit, that the
// kernel gave it no more.
func (l memoryLimit) why(used int64) string {
	said, wanted := fmt.Sprintf("used %d MiB", used>>20), ""
	if used>>20 <= int64(l.mib) {
		said, wanted = "needed more", " than"
	}
	if l.asked {
		return fmt.Sprintf("%s%s the %d MiB of memory that it asked for", said, cmp.Or(wanted, " of"), l.mib)
	}
	return fmt.Sprintf("%s%s the %d MiB of memory that its cpus' share of its worker is; memory_mib asks for more",
		said, cmp.Or(wanted, " of"), l.mib)
}

// LimitMemory has the task killed when its processes together use more memory than this. asked says that the task asked
// for so much; else it is its share of its worker's. It is called before the attempt runs.
func (e *Attempt) LimitMemory(mib int, asked bool) { e.memory = memoryLimit{mib, asked} }

// exceed kills the attempt's processes because of the memory that they use, and strays, which belong to it although
// they have left its group. An attempt that was stopped for another reason, or has ended, stays as it is.
func (e *Attempt) exceed(used int64, strays []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause == "" && e.proc.kill(strays) {
		e.blameLocked(used)
	}
}

// blameLocked makes memory the reason why the attempt failed.
func (e *Attempt) blameLocked(used int64) {
	e.cause, e.why, e.overMemory = execution.Failed, e.memory.why(used), used
}

// refused makes memory the reason why an attempt failed to which the kernel gave no more, and of which it killed a
// process: also if the others went on without that one and the task seems to be done.
func (e *Attempt) refused(end ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause == "" && end.refused {
		e.blameLocked(max(e.memory.bytes(), end.used.MaxRSSKiB<<10))
	}
}

const (
	// watchAfter is how long a task runs before its memory is looked at: those that are shorter cost nothing.
	watchAfter = 100 * time.Millisecond
	// watchShare bounds what looking takes of a cpu: for each moment of it there are so many of rest, up to watchRest.
	// That a look waits for a cpu, as it may on a worker whose tasks compute, costs nobody anything.
	watchShare = 100
	watchRest  = 2 * time.Second
)

// A memoryWatch looks at the memory of the tasks that have run for long, all of them at once. Groups of the kernel's
// are exact where the worker may make them, but they count from when a task has joined one; and mostly it may not.
//
// What all processes of a task have in their resident sets is more than what they have together, by what they share,
// and by files that they have mapped, which the kernel can drop. It is asked for first, because it costs little; the
// real number only of tasks that seem to have too much.
type memoryWatch struct {
	mu    sync.Mutex             // guards what follows
	tasks map[*Attempt]time.Time // :: attempt → when it began
	armed bool                   // a look is to come
}

// add begins to watch an attempt whose process has started.
func (w *memoryWatch) add(e *Attempt) {
	if e.memory.mib == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tasks == nil {
		w.tasks = map[*Attempt]time.Time{}
	}
	w.tasks[e] = time.Now()
	if !w.armed {
		w.armed = true
		time.AfterFunc(watchAfter, w.look)
	}
}

// drop ends the watch over an attempt.
func (w *memoryWatch) drop(e *Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tasks, e)
}

// due returns the attempts that have run for long at now.
func (w *memoryWatch) due(now time.Time) (long []*Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for e, began := range w.tasks {
		if now.Sub(began) >= watchAfter {
			long = append(long, e)
		}
	}
	return long
}

// look looks at all tasks that have run for long, and has the next look come, unless there are none. A look that took
// long, on a machine with many processes, is followed by a longer rest.
func (w *memoryWatch) look() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	if long := w.due(time.Now()); len(long) > 0 {
		all := proc.All()
		for _, e := range long {
			e.judge(all)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed = len(w.tasks) > 0; w.armed {
		time.AfterFunc(max(watchAfter, min(watchRest, watchShare*(threadTime()-began))), w.look)
	}
}

// threadTime is how long the thread has had a cpu.
func threadTime() time.Duration {
	const thisThread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	_ = syscall.Getrusage(thisThread, &used) // it cannot fail for oneself
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// judge ends the attempt if its processes have more memory than they may, or if the kernel has killed one of them for
// it: the others may wait for that without end. all are the processes of the machine.
func (e *Attempt) judge(all []proc.Process) {
	tree := proc.Tree(all, e.proc.pid)
	var used int64
	if resident(tree) > e.memory.bytes() {
		used = held(tree)
	}
	if used <= e.memory.bytes() && !e.proc.refused() {
		return
	}
	var strays []int
	for _, p := range tree {
		if p.Group != e.proc.pid {
			strays = append(strays, p.ID)
		}
	}
	e.exceed(max(used, e.memory.bytes()), strays)
}

// resident adds up what is cheap to know.
func resident(tree []proc.Process) (sum int64) {
	for _, p := range tree {
		sum += p.ResidentBytes
	}
	return sum
}

// held adds up what the processes have together. Where the kernel does not tell it of one, its resident set counts.
func held(tree []proc.Process) (sum int64) {
	for _, p := range tree {
		size, ok := proc.Held(p.ID)
		if !ok {
			size = p.ResidentBytes
		}
		sum += size
	}
	return sum
}
