package baseline

// Static holds a fixed number of pilots: those that end are replaced, until the run is over. It is what users do by
// hand, and Figure 6.2 of Juve's Resource management for scientific workflows (2012): 800 processors for 4 hours.
type Static struct{ Pilots int }

// Decide asks for those that are missing.
func (p Static) Decide(s Sight) int { return max(0, p.Pilots-s.Pilots()) }
