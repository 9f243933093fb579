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

// A memoryLimit limits the total memory of a task's processes.
type memoryLimit struct {
	mib   int  // 0: any amount
	asked bool // by the task; false: it is a share of its worker's memory
}

func (l memoryLimit) bytes() int64 { return int64(l.mib) << 20 }

// why explains that a task used the given number of bytes of memory when it was killed or, if this number does not
// exceed the limit, that the kernel refused the task more memory.
func (l memoryLimit) why(used int64) string {
	said, wanted := fmt.Sprintf("used %d MiB", used>>20), ""
	if used>>20 <= int64(l.mib) {
		said, wanted = "needed more", " than"
	}
	if l.asked {
		return fmt.Sprintf("%s%s the %d MiB of memory that it asked for", said, cmp.Or(wanted, " of"), l.mib)
	}
	return fmt.Sprintf("%s%s the %d MiB of memory that its share of the worker allows; request more with memory_mib",
		said, cmp.Or(wanted, " of"), l.mib)
}

// LimitMemory limits the task's memory: the task is killed when its processes together use more than mib MiB. If asked
// is true, the task requested this amount; otherwise it is the task's share of its worker. LimitMemory must be called
// before the attempt runs.
func (e *Attempt) LimitMemory(mib int, asked bool) { e.memory = memoryLimit{mib, asked} }

// exceed kills the attempt's processes because of their memory use, including strays, which belong to the attempt
// although they have left its process group. It does nothing if the attempt was stopped for another reason or has
// ended.
func (e *Attempt) exceed(used int64, strays []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause == "" && e.proc.kill(strays) {
		e.blameLocked(used)
	}
}

// blameLocked records memory as the reason why the attempt failed.
func (e *Attempt) blameLocked(used int64) {
	e.cause, e.why, e.overMemory = execution.Failed, e.memory.why(used), used
}

// refused records memory as the reason for failure if the kernel killed one of the attempt's processes instead of
// giving it more memory. This also applies if the other processes continued and the task appears to have succeeded.
func (e *Attempt) refused(end ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause == "" && end.refused {
		e.blameLocked(max(e.memory.bytes(), end.used.MaxRSSKiB<<10))
	}
}

const (
	// watchAfter is the time for which a task runs before its memory is checked; the check costs nothing for shorter
	// tasks.
	watchAfter = 100 * time.Millisecond
	// watchShare limits the CPU time of the checks: each check is followed by a pause of watchShare times the CPU time
	// that it used, up to watchRest. Waiting for a CPU, which is common on a worker with busy tasks, does not count.
	watchShare = 100
	watchRest  = 2 * time.Second
)

// A memoryWatch checks the memory of all long-running tasks together. The kernel's control groups are exact, but they
// count only from the time when a task has joined one, and most workers may not create them.
//
// The sum of the resident set sizes of a task's processes exceeds their real memory by their shared pages, and by
// mapped files, which the kernel can drop. The sum is read first, because it is cheap; the real number is read only for
// tasks that seem to exceed their limit.
type memoryWatch struct {
	mu    sync.Mutex             // guards the fields below
	tasks map[*Attempt]time.Time // :: attempt → when it began
	armed bool                   // a check is scheduled
}

// add starts watching an attempt whose process has started.
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

// drop stops watching an attempt.
func (w *memoryWatch) drop(e *Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tasks, e)
}

// due returns the attempts that have been running for at least watchAfter at now.
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

// look checks all long-running tasks and schedules the next check while tasks are watched. A check that took long, on a
// machine with many processes, is followed by a longer pause.
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

// threadTime returns the CPU time that the thread has used.
func threadTime() time.Duration {
	const thisThread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	_ = syscall.Getrusage(thisThread, &used) // it cannot fail for the calling thread
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// judge stops the attempt if its processes exceed their memory limit, or if the kernel has killed one of them because
// of the limit: the others might wait for the killed process indefinitely. all lists the processes of the machine.
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

// resident returns the sum of the resident set sizes, which are cheap to read.
func resident(tree []proc.Process) (sum int64) {
	for _, p := range tree {
		sum += p.ResidentBytes
	}
	return sum
}

// held returns the memory that the processes use together. If the kernel does not report it for a process, its resident
// set size counts.
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
