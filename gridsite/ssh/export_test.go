package ssh

import "time"

// SetPatience shortens how long a login, or a login shell, may take.
func (s *Conn) SetPatience(d time.Duration) { s.timing.dial = d }

// RemoteLine is what is sent to a login shell.
var RemoteLine = remoteLine
