package baseline

// Static holds a fixed number of pilots: pilots that have ended are replaced until the run is over. This is common
// manual practice, as in Figure 6.2 of Juve's Resource management for scientific workflows (2012): 800 processors for 4
// hours.
type Static struct{ Pilots int }

// Decide requests the missing pilots.
func (p Static) Decide(s Sight) int { return max(0, p.Pilots-s.Pilots()) }
