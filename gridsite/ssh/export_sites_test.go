//go:build sites

package ssh

import "time"

// SetKeepalive shortens how long a silent server is waited for.
func (s *Conn) SetKeepalive(every, answer time.Duration) {
	s.timing.keepalive, s.timing.answer = every, answer
}

// SetSessionPatience shortens how long a session may be refused.
func (s *Conn) SetSessionPatience(d time.Duration) { s.timing.refused = d }

// SetAgentPatience shortens how long an agent may take.
func (s *Conn) SetAgentPatience(d time.Duration) { s.timing.agent = d }
