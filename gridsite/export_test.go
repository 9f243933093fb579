package gridsite

import "time"

// SetGrace shortens the grace for tests of what resists SIGTERM.
func (f *Fork) SetGrace(d time.Duration) { f.grace = d }

// SetKeepalive shortens how long a silent server is waited for.
func (s *SSH) SetKeepalive(every, answer time.Duration) {
	s.timing.keepalive, s.timing.answer = every, answer
}

// SetPatience shortens how long a login, or a login shell, may take.
func (s *SSH) SetPatience(d time.Duration) { s.timing.dial = d }

// SetSessionPatience shortens how long a session may be refused.
func (s *SSH) SetSessionPatience(d time.Duration) { s.timing.refused = d }

// SetAgentPatience shortens how long an agent may take.
func (s *SSH) SetAgentPatience(d time.Duration) { s.timing.agent = d }

// RemoteLine is what is sent to a login shell.
var RemoteLine = remoteLine
