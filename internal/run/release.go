package run

import (
	"cmp"
	"slices"

	"github.com/corral-pilot/corral/internal/execution"
)

// release makes jobs of the loose tasks whose time has come, highest upward rank first. A time further
// off than any back-off is one of a clock that was set back since: it has come too. supply is the
// latest known; it matters only for clustered jobs, see split.
func (s *state) release(now msec, supply Supply) []*job {
	var lists [][]int32
	later := s.loose[:0]
	for _, b := range s.loose {
		if b.after > now && b.after <= now+msec(backoffMax.Milliseconds()) {
			later = append(later, b)
			continue
		}
		lists = append(lists, s.split(b.tasks, supply)...)
	}
	if s.loose = later; len(later) == 0 {
		s.loose = nil // it was large if the run is large and began just now
	}
	slices.SortStableFunc(lists, func(a, b []int32) int { return cmp.Compare(s.plan.priority(b), s.plan.priority(a)) })
	var jobs []*job
	for _, tasks := range lists {
		if slices.ContainsFunc(tasks, func(i int32) bool { return !s.idle(i) }) {
			continue // loose twice, and released a moment ago
		}
		jobs = append(jobs, s.take(s.nextSeq, tasks))
		s.nextSeq++
	}
	return jobs
}

// split parts a batch into jobs: the tasks whose first attempt it is together, the others alone. A
// clustered job that would outlive every worker is of no use to anybody: its tasks go alone.
func (s *state) split(tasks []int32, supply Supply) [][]int32 {
	var first []int32
	var alone [][]int32
	for k, i := range tasks {
		switch {
		case !s.idle(i):
		case s.tasks[i].attempt == 1 && len(tasks) > 1:
			first = append(first, i)
		default:
			alone = append(alone, tasks[k:k+1:k+1])
		}
	}
	switch {
	case len(first) == 0:
		return alone
	case len(supply.Shapes) > 0 && !supply.takes(s.needOf(first)):
		return append(alone, slices.Collect(slices.Chunk(first, 1))...)
	}
	return append(alone, first)
}

// nextRelease returns when the next loose task may be released, 0 if none is loose.
func (s *state) nextRelease() msec {
	var next msec
	for _, b := range s.loose {
		if next == 0 || b.after < next {
			next = b.after
		}
	}
	return next
}

// poolJob returns what the cluster is given for a job: the tasks that are still in it.
func (s *state) poolJob(j *job) execution.Job {
	tasks := s.remaining(j)
	made := execution.Job{
		Run: s.plan.run, Seq: j.seq, Dir: s.plan.dir, Mark: s.plan.mark,
		CPUs: j.need.cpus, MemoryMiB: j.need.memoryMiB,
		Priority: s.plan.priority(tasks), Tasks: make([]execution.Task, len(tasks)),
	}
	for k, i := range tasks {
		made.Tasks[k] = s.plan.poolTask(i)
		made.Tasks[k].Attempt = int(s.tasks[i].attempt)
		made.Tasks[k].Estimate = s.need(i).time
	}
	return made
}

// expected returns the jobs that may be running, by worker, in the order of their release.
func (s *state) expected() map[string][]*job {
	jobs := make(map[string][]*job)
	for _, j := range s.jobs {
		if j.worker != 0 {
			name := s.workers.all[j.worker].name
			jobs[name] = append(jobs[name], j)
		}
	}
	for _, of := range jobs {
		slices.SortFunc(of, func(a, b *job) int { return cmp.Compare(a.seq, b.seq) })
	}
	return jobs
}
