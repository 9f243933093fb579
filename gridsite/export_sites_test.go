//go:build sites

package gridsite

import "time"

// SetKeepalive shortens how long a silent server is waited for.
func (s *SSH) SetKeepalive(every, answer time.Duration) {
	s.timing.keepalive, s.timing.answer = every, answer
}

// SetSessionPatience shortens how long a session may be refused.
func (s *SSH) SetSessionPatience(d time.Duration) { s.timing.refused = d }

// SetAgentPatience shortens how long an agent may take.
func (s *SSH) SetAgentPatience(d time.Duration) { s.timing.agent = d }
