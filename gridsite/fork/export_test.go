package fork

import "time"

// SetGrace shortens the grace period for tests of jobs that resist SIGTERM.
func (b *Batch) SetGrace(d time.Duration) { b.grace = d }
