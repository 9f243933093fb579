package baseline

// Greedy asks for a pilot for each queued task, however many cpus a pilot has: one virtual machine for each job, as SGE
// and HTCondor burst into clouds (Juve 2012, 6.1).
type Greedy struct{}

// Decide asks for as many as there are tasks without one.
func (Greedy) Decide(s Sight) int { return max(0, s.Queued-s.Pending) }
