package baseline

// GlideinWMS is the request of a glideinWMS frontend to one entry of a factory (frontend/glideinFrontendElement.py,
// compute_glidein_min_idle, v3.11), and the factory's answer: it keeps so many glideins waiting.
type GlideinWMS struct {
	Attenuation int     // by which idle jobs are divided: it takes a few cycles to stabilise
	Reserve     int     // glideins that wait for jobs that have been idle for long
	MaxIdle     int     // glideins that wait at the entry
	CurbIdle    int     // workers without work beyond which half is asked for
	MostIdle    int     // workers without work beyond which nothing is
	MaxRunning  int     // glideins of the entry
	Fraction    float64 // by which the running ones may be exceeded

	before int // jobs that were idle at the last look
}

// DefaultGlideinWMS has the defaults of the documentation.
func DefaultGlideinWMS() *GlideinWMS {
	return &GlideinWMS{Attenuation: 3, Reserve: 5, MaxIdle: 100, CurbIdle: 20, MostIdle: 100, MaxRunning: 2000,
		Fraction: 1.15}
}

// Decide keeps as many glideins waiting as minIdle says, and no more running than maxRun. Jobs that were idle at the
// last look, too, count as old.
func (p *GlideinWMS) Decide(s Sight) int {
	old := min(p.before, s.Queued)
	p.before = s.Queued
	want := p.minIdle(s, old) - s.Pending
	return max(0, min(want, p.maxRun(s)-s.Pilots()))
}

// minIdle is how many glideins are to wait at the entry.
func (p *GlideinWMS) minIdle(s Sight, old int) int {
	free := s.pilots(s.CPUs-s.Busy+1) - 1 // whole pilots without work
	idle := s.pilots(s.Queued) - free
	headroom := p.MaxRunning - s.Pilots()
	if idle <= 0 || headroom <= 0 || free >= p.MostIdle {
		return 0
	}
	n := (min(idle, headroom)+p.Attenuation-1)/p.Attenuation + min(s.pilots(old)/3, p.Reserve)
	n = min(n, p.MaxIdle)
	if free >= p.CurbIdle {
		n /= 2
	}
	return n
}

// maxRun is how many glideins may be there: those that run, and one for each idle job that has none.
func (p *GlideinWMS) maxRun(s Sight) int {
	free := max(0, s.CPUs-s.Busy)
	return int(float64(s.pilots(max(0, s.Queued-free))+s.Present)*p.Fraction) + 1
}
