package baseline

// HyperQueue models HyperQueue's automatic allocation (v0.26, docs/deployment/allocation.md): while there are tasks
// that neither present nor requested workers could take, it keeps a backlog of allocations in the batch system's queue.
type HyperQueue struct {
	Backlog int // queued allocations
	Workers int // workers per allocation; 0: 1
	Most    int // maximum number of workers at once; 0: no limit
}

// Decide fills the backlog. An allocation of several workers is represented by as many pilots.
func (p HyperQueue) Decide(s Sight) int {
	workers := max(1, p.Workers)
	missing := s.pilots(s.Queued-max(0, s.CPUs-s.Busy)) - s.Pending
	if missing <= 0 {
		return 0
	}
	allocations := min((missing+workers-1)/workers, p.Backlog-(s.Pending+workers-1)/workers)
	more := max(0, allocations) * workers
	if p.Most > 0 {
		more = min(more, max(0, p.Most-s.Pilots()))
	}
	return more
}
