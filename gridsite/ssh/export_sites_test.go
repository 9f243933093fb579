//go:build sites

package ssh

import "time"

// SetKeepalive shortens the wait for a silent server.
func (s *Conn) SetKeepalive(every, answer time.Duration) {
	s.timing.keepalive, s.timing.answer = every, answer
}

// SetSessionPatience shortens the time during which a session may be refused.
func (s *Conn) SetSessionPatience(d time.Duration) { s.timing.refused = d }

// SetAgentPatience shortens the time that an agent may take.
func (s *Conn) SetAgentPatience(d time.Duration) { s.timing.agent = d }
