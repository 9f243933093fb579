package gridsite

import "time"

// SetGrace shortens the grace for tests of what resists SIGTERM.
func (f *Fork) SetGrace(d time.Duration) { f.grace = d }
