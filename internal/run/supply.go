package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/pool"
)

// A Queue takes the jobs of runs: a personal cluster's dispatcher. Its methods may be called from any
// goroutine, but not from a Sink's.
type Queue interface {
	// Attach makes sink the owner of the run's jobs.
	Attach(run corral.RunID, sink pool.Sink)
	// Detach forgets the run and its jobs; the sink is not called again.
	Detach(run corral.RunID)
	// Submit queues jobs of an attached run.
	Submit(jobs []execution.Job)
	// Cancel kills what runs of the run and returns all its jobs, through the sink.
	Cancel(run corral.RunID)
	// Expect says that worker may have these jobs, from before a restart. If it does not come back
	// with them in time, they are returned.
	Expect(run corral.RunID, worker string, jobs []execution.Job)
}

// Clusters finds queues, and says what could take a task.
type Clusters interface {
	// Queue returns a cluster's queue, NotFound if the cluster is gone.
	Queue(id corral.ClusterID) (Queue, error)
	// Supply says what workers a cluster has and expects.
	Supply(ctx context.Context, id corral.ClusterID) (Supply, error)
}

// A Supply is what a cluster has to offer now and what was requested for it.
type Supply struct {
	CPUs   int     // of the workers registered now
	Shapes []Shape // of the workers present, and of those requested
}

// A Shape is what one worker offers to one task.
type Shape struct {
	Name      string        // "worker ID", "glidein 7 (WAITING: back-off)"
	CPUs      int           // all of the worker's, not only those free now
	MemoryMiB int           // likewise
	Left      time.Duration // present: until it leaves; requested: its walltime without the reserve
	Present   bool
}

// WorkerShape returns the shape of a worker that has registered. One that is draining or out of touch
// offers nothing, but it belongs into the supply: what it runs is running.
func WorkerShape(w corral.Worker, now time.Time) Shape {
	shape := Shape{Name: workerShape + w.ID, Present: true}
	if w.Connected && !w.Draining {
		shape.CPUs, shape.MemoryMiB, shape.Left = w.CPUs, w.MemoryMiB, w.EndsAt.Sub(now)-execution.StartMargin
	}
	return shape
}

// workerShape begins the names of shapes that are present; the worker's id follows.
const workerShape = "worker "

// worker returns the id of the worker that is present in this shape, "" if none is.
func (s Shape) worker() string {
	if id, ok := strings.CutPrefix(s.Name, workerShape); ok && s.Present {
		return id
	}
	return ""
}

// here returns the ids of the workers that are present.
func (s Supply) here() map[string]bool {
	ids := make(map[string]bool)
	for _, shape := range s.Shapes {
		ids[shape.worker()] = true
	}
	delete(ids, "")
	return ids
}

// A need is what a job asks of a worker.
type need struct {
	cpus      int
	memoryMiB int
	time      time.Duration
}

// fits reports whether a worker of this shape could take a job that needs n.
func (s Shape) fits(n need) bool {
	return n.cpus <= s.CPUs && n.memoryMiB <= s.MemoryMiB && n.time <= s.Left
}

// takes reports whether some worker, present or requested, could take a job that needs n.
func (s Supply) takes(n need) bool {
	for _, shape := range s.Shapes {
		if shape.fits(n) {
			return true
		}
	}
	return false
}

// distinct returns the supply without shapes that another one covers, so that asking it about each of
// 100,000 jobs stays cheap with hundreds of workers.
func (s Supply) distinct() Supply {
	var kept []Shape
	for _, shape := range s.Shapes {
		if !covered(shape, kept) {
			kept = append(dropCovered(kept, shape), shape)
		}
	}
	return Supply{CPUs: s.CPUs, Shapes: kept}
}

func covered(shape Shape, by []Shape) bool {
	return Supply{Shapes: by}.takes(need{shape.CPUs, shape.MemoryMiB, shape.Left})
}

func dropCovered(shapes []Shape, by Shape) []Shape {
	kept := shapes[:0]
	for _, s := range shapes {
		if !covered(s, []Shape{by}) {
			kept = append(kept, s)
		}
	}
	return kept
}

// lack says in half a sentence why no worker could take a job that needs n: "needs 65536 MiB; the
// largest worker here has 2048 MiB". It is for supplies of which takes(n) is false.
func (s Supply) lack(n need) string {
	if len(s.Shapes) == 0 {
		return "needs a worker; the cluster has none and none is requested"
	}
	most, here := s.most()
	switch {
	case most.cpus == 0:
		return "needs a worker; those here take nothing any more and none is requested"
	case n.cpus > most.cpus:
		return fmt.Sprintf("needs %d cpus; the largest worker %s has %d", n.cpus, here, most.cpus)
	case n.memoryMiB > most.memoryMiB:
		return fmt.Sprintf("needs %d MiB; the largest worker %s has %d MiB", n.memoryMiB, here, most.memoryMiB)
	case n.time > most.time:
		return fmt.Sprintf("needs %s; the worker %s that stays longest has %s left", round(n.time), here, round(most.time))
	}
	return fmt.Sprintf("needs %d cpus, %d MiB and %s; no worker %s has all of that together", n.cpus, n.memoryMiB, round(n.time), here)
}

// most returns the greatest of each quantity that any shape has, and where the shapes are: "here", or
// "requested" if no worker is present.
func (s Supply) most() (n need, where string) {
	where = "requested"
	for _, shape := range s.Shapes {
		n.cpus = max(n.cpus, shape.CPUs)
		n.memoryMiB = max(n.memoryMiB, shape.MemoryMiB)
		n.time = max(n.time, shape.Left)
		if shape.Present {
			where = "here"
		}
	}
	return n, where
}

// round drops what nobody wants to read: milliseconds of minutes.
func round(d time.Duration) time.Duration {
	if d >= 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}
