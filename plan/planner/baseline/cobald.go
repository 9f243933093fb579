package baseline

import "time"

// COBalD is the linear controller of COBalD (cobald 0.14, controller/linear.py), which TARDIS uses: the demand grows at
// a constant rate while the resources are used, and shrinks while they are not. It does not use the queue.
type COBalD struct {
	Low, High float64 // utilization below which the demand shrinks, allocation above which it grows
	Rate      float64 // cpus per second

	demand float64
	last   time.Duration
}

// DefaultCOBalD returns the controller's defaults.
func DefaultCOBalD() *COBalD { return &COBalD{Low: 0.5, High: 0.5, Rate: 1} }

// Decide adjusts the demand and requests the pilots that it needs. Utilization and allocation are the same for a single
// resource, and 1 without workers.
func (p *COBalD) Decide(s Sight) int {
	used := 1.0
	if s.CPUs > 0 {
		used = float64(s.Busy) / float64(s.CPUs)
	}
	by := p.Rate * (s.Now - p.last).Seconds()
	p.last = s.Now
	switch {
	case used < p.Low:
		p.demand = max(0, p.demand-by)
	case used > p.High:
		p.demand += by
	}
	// Without a limit the demand would grow as long as pilots wait in their queue. COBalD leaves this to a decorator;
	// here the demand is limited to twice the requested pilots plus one.
	p.demand = min(p.demand, float64((2*s.Pilots()+1)*s.Each))
	return s.pilots(int(p.demand+0.999)) - s.Pilots()
}
