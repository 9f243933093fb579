package baseline

// HyperQueue is its automatic allocation (v0.26, docs/deployment/allocation.md): as long as tasks wait that neither
// present nor asked-for workers could take, a backlog of allocations is kept in the queue of the batch system.
type HyperQueue struct {
	Backlog int // allocations that wait
	Workers int // of an allocation; 0: 1
	Most    int // workers at once; 0: no limit
}

// Decide fills the backlog. An allocation of several workers is as many pilots here.
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
