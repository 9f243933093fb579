package baseline

// Greedy requests a pilot for each queued task, regardless of the pilot's cpus: one virtual machine per job, as when
// SGE and HTCondor burst into clouds (Juve 2012, 6.1).
type Greedy struct{}

// Decide requests a pilot for each task without one.
func (Greedy) Decide(s Sight) int { return max(0, s.Queued-s.Pending) }
