package gridsite

import "time"

// SetGrace shortens the grace for tests of what resists SIGTERM.
func (f *Fork) SetGrace(d time.Duration) { f.grace = d }

// SetPatience shortens how long a login, or a login shell, may take.
func (s *SSH) SetPatience(d time.Duration) { s.timing.dial = d }

// RemoteLine is what is sent to a login shell.
var RemoteLine = remoteLine
