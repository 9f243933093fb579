package main

import (
	"math"
	"math/bits"
	"time"

	"github.com/corral-pilot/corral/plan/sim/market"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// offers describes the slots that a site of 256 processors advertises, hour by hour (figures 4 to 7): their number, its
// correlation with the number of jobs, and their widths. The thesis has 27 slots on 430 processors and 14 on 128, most
// of them with up to ten processors, with peaks at powers of two.
func (d *desk) offers() error {
	base, err := d.lublin(256)
	if err != nil {
		return err
	}
	d.printf("\nWhat 256 processors advertise, every hour, %s:\n\n", base.name)
	d.printf("| load | slots | most | jobs in the system | correlation | of up to 10 processors | powers of two |\n")
	d.printf("|---|---|---|---|---|---|---|\n")
	for _, load := range []float64{0.63, 0.70, 0.88} {
		m := base.loaded(load)
		q := queue.New(m.Machine, m.jobs)
		last := m.jobs[len(m.jobs)-1].Submit
		var slots, jobs []float64
		narrow, powers, all, most := 0, 0, 0, 0
		for at := last / 10; at < last; at += time.Hour {
			q.Advance(at, nil)
			o, err := (&market.Advertiser{Queue: q, Price: unit}).Offer()
			if err != nil {
				return err
			}
			for _, s := range o.Slots {
				if all++; s.Processors <= 10 {
					narrow++
				}
				if bits.OnesCount(uint(s.Processors)) == 1 {
					powers++
				}
			}
			most = max(most, len(o.Slots))
			slots, jobs = append(slots, float64(len(o.Slots))), append(jobs, float64(q.Waiting()+q.Running()))
		}
		d.printf("| %.2f | %.1f | %d | %.1f | %.2f | %.0f %% | %.0f %% |\n", load, mean(slots), most, mean(jobs),
			correlation(slots, jobs), share(narrow, all), share(powers, all))
	}
	return nil
}

func share(part, all int) float64 { return 100 * float64(part) / float64(all) }

func mean(all []float64) (m float64) {
	for _, x := range all {
		m += x
	}
	return m / float64(len(all))
}

// correlation returns Pearson's coefficient.
func correlation(x, y []float64) float64 {
	mx, my := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}
