package baseline

import "time"

// COBalD is the linear controller of COBalD (cobald 0.14, controller/linear.py), which TARDIS uses: the demand grows at
// a constant rate while what is there is used, and shrinks while it is not. It sees no queue.
type COBalD struct {
	Low, High float64 // utilisation below which the demand shrinks, allocation above which it grows
	Rate      float64 // cpus a second

	demand float64
	last   time.Duration
}

// DefaultCOBalD has the controller's defaults.
func DefaultCOBalD() *COBalD { return &COBalD{Low: 0.5, High: 0.5, Rate: 1} }

// Decide moves the demand, and asks for as many pilots as it takes. Without workers both utilisation and allocation are
// 1. Of one resource they are the same.
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
	// Without a bound the demand grows for as long as pilots wait in their queue. COBalD leaves that to a decorator;
	// ours keeps it to twice what was asked for, and one pilot.
	p.demand = min(p.demand, float64((2*s.Pilots()+1)*s.Each))
	return s.pilots(int(p.demand+0.999)) - s.Pilots()
}
