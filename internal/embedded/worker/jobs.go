package worker

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// jobs are the jobs that the worker holds: some are running, the others wait in order of arrival.
type jobs struct {
	all     map[execution.Key]*work
	waiting []*work
	room    matching.Room // resources not used by running jobs
	gpus    []string      // GPUs not used by running jobs
	vacated int           // number of jobs that have vacated their place
	sight   sight         // of the directories of their runs; it has its own lock
}

// add adds a waiting job.
func (j *jobs) add(k *work) {
	j.all[k.job.Key()] = k
	j.waiting = append(j.waiting, k)
}

// next returns the first waiting job and the verdict on it, or nil if no job waits.
func (j *jobs) next(now time.Time) (*work, matching.Verdict) {
	if len(j.waiting) == 0 {
		return nil, matching.Keep
	}
	return j.waiting[0], j.room.Judge(now, j.waiting[0].needs())
}

// start marks the first waiting job as running.
func (j *jobs) start() {
	k := j.waiting[0]
	j.waiting = j.waiting[1:]
	k.running = true
	j.room.Take(k.needs())
	n := min(k.job.GPUs, len(j.gpus))
	k.gpus, j.gpus = slices.Clone(j.gpus[:n]), j.gpus[n:]
}

// vacate releases the resources of a running job that only has to return files; it reports whether this is allowed. The
// number of such jobs is limited to the worker's CPUs, because their folders use disk space; a job that requested disk
// space may not vacate.
func (j *jobs) vacate(k *work, cpus int) bool {
	if j.vacated >= cpus || k.job.DiskMiB > 0 {
		return false
	}
	j.vacated++
	k.vacated = true
	j.free(k)
	return true
}

// free releases the resources of a job that ran.
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

// notStarted returns the jobs among keys that are waiting.
func (j *jobs) notStarted(keys []execution.Key) []*work {
	var found []*work
	for _, key := range keys {
		if k := j.all[key]; k != nil && !k.running {
			found = append(found, k)
		}
	}
	return found
}

// giveUp forgets waiting jobs, and returns their keys. It replaces the list of waiting jobs, because the caller may be
// iterating over the old one.
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

// held lists the jobs for a report to the dispatcher: first the running ones, then the waiting ones in order.
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
