package baseline

// Falkon requests pilots according to the queue, which leave after some time without work (Raicu, Zhao, Dumitrescu,
// Foster and Wilde: Falkon: a fast and light-weight task execution framework, SC 2007; Juve 2012, 6.1).
type Falkon struct {
	Doubling bool // request 1, 2, 4 … pilots at a time; otherwise all missing pilots at once
	next     int
}

// Decide requests the pilots that are missing for the queued tasks.
func (p *Falkon) Decide(s Sight) int {
	missing := s.pilots(s.Queued) - s.Pending
	if missing <= 0 {
		p.next = 0
		return 0
	}
	if !p.Doubling {
		return missing
	}
	p.next = max(1, 2*p.next)
	return min(missing, p.next)
}
