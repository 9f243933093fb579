package baseline

// Falkon looks at the queue and decides how many pilots to ask for; they leave after a time without work (Raicu, Zhao,
// Dumitrescu, Foster and Wilde: Falkon: a fast and light-weight task execution framework, SC 2007; Juve 2012, 6.1).
type Falkon struct {
	Doubling bool // asks for 1, 2, 4 … at a time, else for all that are missing
	next     int
}

// Decide asks for what the queued tasks lack.
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
