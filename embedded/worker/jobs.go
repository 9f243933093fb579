package worker

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// jobs are those that the worker has: some run, the others wait, in the order in which they came.
type jobs struct {
	all     map[execution.Key]*work
	waiting []*work
	room    matching.Room // what those that run leave
	gpus    []string      // those that none of them uses
	vacated int           // how many have vacated their place
	sight   sight         // of the directories of their runs; it has a lock of its own
}

// add takes in a job, which waits.
func (j *jobs) add(k *work) {
	j.all[k.job.Key()] = k
	j.waiting = append(j.waiting, k)
}

// next returns the job that waits first, and what becomes of it; nil: none waits.
func (j *jobs) next(now time.Time) (*work, matching.Verdict) {
	if len(j.waiting) == 0 {
		return nil, matching.Keep
	}
	return j.waiting[0], j.room.Judge(now, j.waiting[0].needs())
}

// start books that the job which waits first runs.
func (j *jobs) start() {
	k := j.waiting[0]
	j.waiting = j.waiting[1:]
	k.running = true
	j.room.Take(k.needs())
	n := min(k.job.GPUs, len(j.gpus))
	k.gpus, j.gpus = slices.Clone(j.gpus[:n]), j.gpus[n:]
}

// vacate books that a job which runs needs its place no longer, and reports whether it does: all that it still does is
// to bring back files. At most as many jobs do so at a time as the worker has cpus, since their folders take up disk,
// and none that has asked for disk.
func (j *jobs) vacate(k *work, cpus int) bool {
	if j.vacated >= cpus || k.job.DiskMiB > 0 {
		return false
	}
	j.vacated++
	k.vacated = true
	j.free(k)
	return true
}

// free gives back what a job that ran took of the machine.
func (j *jobs) free(k *work) {
	j.room.Free(k.needs())
	j.gpus = append(slices.Clip(j.gpus), k.gpus...)
}

// over forgets a job that ran.
func (j *jobs) over(k *work) {
	delete(j.all, k.job.Key())
	if k.vacated {
		j.vacated--
		return
	}
	j.free(k)
}

// notStarted returns those of the jobs that wait.
func (j *jobs) notStarted(keys []execution.Key) []*work {
	var found []*work
	for _, key := range keys {
		if k := j.all[key]; k != nil && !k.running {
			found = append(found, k)
		}
	}
	return found
}

// giveUp forgets jobs that wait, and returns their keys. The list of what waits becomes a new one, because the caller
// may be going through the old one.
func (j *jobs) giveUp(these []*work) []execution.Key {
	keys := make([]execution.Key, len(these))
	for i, k := range these {
		keys[i] = k.job.Key()
		delete(j.all, keys[i])
		if k.load != nil {
			k.w.runners.Go(k.load.close)
		}
	}
	j.waiting = slices.DeleteFunc(slices.Clone(j.waiting), func(k *work) bool { return j.all[k.job.Key()] != k })
	return keys
}

// held lists the jobs as the worker tells a dispatcher of them: those that run, then those that wait, in their order.
func (j *jobs) held() []wire.HeldJob {
	var held []wire.HeldJob
	list := func(k *work) {
		held = append(held, wire.HeldJob{
			Key: k.job.Key(), Running: k.running, CPUs: k.job.CPUs, MemoryMiB: k.job.MemoryMiB,
			GPUs: k.job.GPUs, DiskMiB: k.job.DiskMiB,
		})
	}
	for _, k := range j.all {
		if k.running {
			list(k)
		}
	}
	for _, k := range j.waiting {
		list(k)
	}
	return held
}
