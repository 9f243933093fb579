package baseline

import (
	"fmt"
	"time"
)

// A Family is a policy with its defaults, and with the other parameters of a small sweep.
type Family struct {
	Default Method
	Sweep   []Method
}

// Families returns the policies that request pilots, for a workflow that can use width pilots at once. Parameters
// without a published default are set here: static holds width pilots, and most policies decide every 10 s.
func Families(width int) []Family {
	return []Family{
		staticFamily(width), greedyFamily(), falkonFamily(), glideinWMSFamily(), cobaldFamily(), hyperQueueFamily(),
		parslFamily(width),
	}
}

const look = 10 * time.Second

func staticFamily(width int) Family {
	of := func(n int, parameters string) Method {
		return Method{"static", parameters, look, 0, func() Strategy { return Static{n} }}
	}
	f := Family{Default: of(width, "")}
	for part := 2; part <= 16 && width/part > 0; part *= 2 {
		f.Sweep = append(f.Sweep, of(width/part, fmt.Sprintf("pilots=%d", width/part)))
	}
	return f
}

func greedyFamily() Family {
	of := func(idle time.Duration, parameters string) Method {
		return Method{"greedy", parameters, look, idle, func() Strategy { return Greedy{} }}
	}
	return Family{of(time.Minute, ""), []Method{of(5*time.Minute, "idle=5m"), of(15*time.Minute, "idle=15m")}}
}

func falkonFamily() Family {
	of := func(idle time.Duration, doubling bool, parameters string) Method {
		return Method{"falkon", parameters, look, idle, func() Strategy { return &Falkon{Doubling: doubling} }}
	}
	return Family{of(time.Minute, false, ""), []Method{
		of(15*time.Second, false, "idle=15s"), of(3*time.Minute, false, "idle=3m"),
		of(time.Minute, true, "exponential"),
	}}
}

func glideinWMSFamily() Family {
	of := func(attenuation int, idle time.Duration, parameters string) Method {
		return Method{"glideinWMS", parameters, time.Minute, idle, func() Strategy {
			p := DefaultGlideinWMS()
			p.Attenuation = attenuation
			return p
		}}
	}
	return Family{of(3, 20*time.Minute, ""), []Method{
		of(1, 20*time.Minute, "ramp_up_attenuation=1"), of(3, 2*time.Minute, "max_idle=2m"),
		of(1, 2*time.Minute, "ramp_up_attenuation=1 max_idle=2m"),
	}}
}

func cobaldFamily() Family {
	of := func(rate, low float64, parameters string) Method {
		return Method{"cobald", parameters, look, 0, func() Strategy {
			p := DefaultCOBalD()
			p.Rate, p.Low = rate, low
			p.High = max(p.High, low)
			return p
		}}
	}
	return Family{of(1, 0.5, ""), []Method{of(0.1, 0.5, "rate=0.1"), of(1, 0.9, "low=high=0.9"),
		of(10, 0.9, "rate=10 low=high=0.9")}}
}

func hyperQueueFamily() Family {
	of := func(backlog, workers int, parameters string) Method {
		return Method{"hyperqueue", parameters, look, 5 * time.Minute,
			func() Strategy { return HyperQueue{Backlog: backlog, Workers: workers} }}
	}
	return Family{of(1, 1, ""), []Method{of(4, 1, "backlog=4"), of(16, 1, "backlog=16"),
		of(4, 4, "backlog=4 max-workers-per-alloc=4")}}
}

func parslFamily(width int) Family {
	of := func(most int, parallelism float64, parameters string) Method {
		return Method{"parsl", parameters, 5 * time.Second, 2 * time.Minute, func() Strategy {
			p := DefaultParsl()
			p.Max, p.Parallelism = most, parallelism
			return p
		}}
	}
	n := max(1, width)
	return Family{of(1, 1, ""), []Method{of(n, 1, fmt.Sprintf("max_blocks=%d", n)),
		of(n, 0.5, fmt.Sprintf("max_blocks=%d parallelism=0.5", n)),
		of(max(1, n/4), 1, fmt.Sprintf("max_blocks=%d", max(1, n/4)))}}
}
