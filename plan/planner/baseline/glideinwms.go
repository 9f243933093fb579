package baseline

// GlideinWMS models the request of a glideinWMS frontend to one entry of a factory (frontend/glideinFrontendElement.py,
// compute_glidein_min_idle, v3.11), and the response of the factory, which keeps the requested number of glideins
// queued.
type GlideinWMS struct {
	Attenuation int     // divisor of idle jobs: the number stabilizes over a few cycles
	Reserve     int     // maximum number of glideins queued for jobs that have been idle for a long time
	MaxIdle     int     // maximum number of glideins queued at the entry
	CurbIdle    int     // idle workers above which half the number is requested
	MostIdle    int     // idle workers above which none is requested
	MaxRunning  int     // maximum number of glideins of the entry
	Fraction    float64 // factor by which the number of running glideins may be exceeded

	before int // jobs that were idle in the previous call
}

// DefaultGlideinWMS returns the documented defaults.
func DefaultGlideinWMS() *GlideinWMS {
	return &GlideinWMS{Attenuation: 3, Reserve: 5, MaxIdle: 100, CurbIdle: 20, MostIdle: 100, MaxRunning: 2000,
		Fraction: 1.15}
}

// Decide keeps minIdle glideins queued, within maxRun in total. Jobs that were already idle in the previous call count
// as old.
func (p *GlideinWMS) Decide(s Sight) int {
	old := min(p.before, s.Queued)
	p.before = s.Queued
	want := p.minIdle(s, old) - s.Pending
	return max(0, min(want, p.maxRun(s)-s.Pilots()))
}

// minIdle returns the number of glideins to keep queued at the entry.
func (p *GlideinWMS) minIdle(s Sight, old int) int {
	free := s.pilots(s.CPUs-s.Busy+1) - 1 // whole idle pilots
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

// maxRun returns the maximum number of glideins: the running ones, and one for each idle job without a glidein.
func (p *GlideinWMS) maxRun(s Sight) int {
	free := max(0, s.CPUs-s.Busy)
	return int(float64(s.pilots(max(0, s.Queued-free))+s.Present)*p.Fraction) + 1
}
