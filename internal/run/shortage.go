package run

import "fmt"

// A shortage is what keeps released jobs from running.
type shortage struct {
	able bool   // some job runs, or could run on a worker that is there or to come
	what string // which task lacks what, in a sentence; empty: nothing lacks anything
}

// shortage compares what was released with what there is; here are the workers present. An assigned job
// whose worker has left counts as one that waits, because the cluster may have queued it again without
// a word; one that is awaited is returned if its worker does not come back.
func (s *state) shortage(supply Supply, here map[string]bool) shortage {
	short := shortage{able: len(s.loose) > 0} // they wait for the end of a back-off
	var first *job
	lacking := 0
	for _, j := range s.jobs {
		held := j.worker != 0 && here[s.workers.all[j.worker].name]
		j.awaited = j.awaited && !held
		if held || j.awaited || supply.takes(j.need) {
			short.able = true
			continue
		}
		lacking += j.left
		if first == nil || s.before(j, first) {
			first = j
		}
	}
	if first != nil {
		short.what = s.sentence(first, supply.lack(first.need), lacking-first.left)
	}
	return short
}

// before reports whether job a comes before job b: by rank, then by the order of their release.
func (s *state) before(a, b *job) bool {
	x, y := s.plan.rank[a.parts[0].Task], s.plan.rank[b.parts[0].Task]
	return x > y || x == y && a.seq < b.seq
}

func (s *state) sentence(j *job, lack string, others int) string {
	tasks := s.remaining(j)
	what := "task " + s.plan.id(tasks[0])
	if len(tasks) > 1 {
		what = fmt.Sprintf("the clustered job of task %s and %d more", s.plan.id(tasks[0]), len(tasks)-1)
	}
	switch others {
	case 0:
		return fmt.Sprintf("%s %s", what, lack)
	case 1:
		return fmt.Sprintf("%s %s; one more task cannot run either", what, lack)
	}
	return fmt.Sprintf("%s %s; %d more tasks cannot run either", what, lack, others)
}
