package fork

import "time"

// SetGrace shortens the grace for tests of what resists SIGTERM.
func (b *Batch) SetGrace(d time.Duration) { b.grace = d }
