package main

import (
	"fmt"
	"slices"
)

// A played panel is a panel with its results.
type played struct {
	panel
	all []standing
}

// of returns the results of an algorithm.
func (p played) of(algorithm string) standing {
	return p.all[slices.IndexFunc(p.all, func(s standing) bool { return s.algorithm == algorithm })]
}

// dynamic returns the better result of DPDS and WA-DPDS.
func (p played) dynamic() float64 { return max(p.of("DPDS").best, p.of("WA-DPDS").best) }

func (p played) String() string {
	return fmt.Sprintf("figure %s, %s, %s, %d", p.figure, p.application, p.kind, p.x)
}

// broken lists the claims of the thesis that the panels do not confirm. With -long, the
// winners are compared in all cells of figure 6.6 (20 of 25 must agree), and SPSS must be the best in all cases with
// tasks sixteen times as long; without -long, only the applications with long tasks are compared, and nine in ten cases
// are enough.
func (d desk) broken(all []played, was map[value]float64) (claims []string) {
	say := func(format string, args ...any) { claims = append(claims, fmt.Sprintf(format, args...)) }
	same, cells, ahead, long := 0, 0, 0, 0
	for _, p := range all {
		spss := p.of("SPSS")
		switch {
		case p.figure == "6.6":
			cells++
			if (spss.best > p.dynamic()) == p.published(was) {
				same++
			}
			if p.application != "montage" && p.application != "cybershake" && spss.best <= p.dynamic() {
				say("%s: SPSS is not the best", p)
			}
		case p.figure == "6.7" && p.x == 16:
			long++
			if spss.best > p.dynamic() {
				ahead++
			}
		case p.figure == "6.7" && p.x == 1 && p.application == "cybershake" && p.kind == "constant":
			if spss.best >= p.dynamic() {
				say("%s: a dynamic algorithm is not the best", p)
			}
		case p.figure == "6.8" && p.x >= 10 && quantile(spss.costs, 0.75) <= 1.05,
			p.figure == "6.10" && p.x >= 90 && quantile(spss.costs, 0.75) <= 1.3:
			say("%s: SPSS costs %.3f of the budget in the upper quartile", p, quantile(spss.costs, 0.75))
		}
		if p.figure == "6.8" || p.figure == "6.10" {
			for _, name := range []string{"DPDS", "WA-DPDS"} {
				if m := quantile(p.of(name).costs, 0.5); m < 0.97 || m > 1 {
					say("%s: %s costs %.3f of the budget in the median", p, name, m)
				}
			}
		}
	}
	if d.long && cells == 25 && same < 20 {
		say("figure 6.6: %d winners of 25 are those that were published", same)
	}
	if least := long - long/10; ahead < least || d.long && ahead < long {
		say("figure 6.7: SPSS is the best in %d of %d with tasks sixteen times as long", ahead, long)
	}
	return claims
}

// published reports whether the published result of SPSS in a panel is better than both others.
func (p played) published(was map[value]float64) bool {
	best := func(algorithm string) float64 {
		return was[value{p.figure, p.application, string(p.kind), p.x, algorithm, "best"}]
	}
	return best("SPSS") > max(best("DPDS"), best("WA-DPDS"))
}

// missed lists our own requirements that are not met (docs/ensembles.md): the rehearsal must be no
// worse than all others in 99 of 100 cases without errors and delays, and in 90 if runtimes err by 20 % and machines
// are 300 s late. A guarded plan must be no worse than WA-DPDS in 80 if runtimes err by half. No budget may be
// exceeded.
func missed(all []played) (claims []string) {
	say := func(format string, args ...any) { claims = append(claims, fmt.Sprintf(format, args...)) }
	exact, off, guarded := &mean{}, &mean{}, &mean{}
	for _, p := range all {
		ours, guard := p.of("rehearsal"), p.of("SPSS, guarded")
		for _, s := range []standing{ours, guard} {
			if s.over > 0 {
				say("%s: %s is over the budget in %.1f %% of the cases", p, s.algorithm, 100*s.over)
			}
		}
		switch {
		case p.figure == "late" && p.x == 20:
			off.add(ours.best)
		case p.figure == "late":
			guarded.add(guard.asGood)
		case p.spread.Law == "" && p.delay == 0:
			exact.add(ours.best)
		}
	}
	for _, c := range []struct {
		what string
		*mean
		least float64
	}{
		{"the rehearsal is no worse than all others where nothing errs", exact, 0.99},
		{"the rehearsal is no worse than all others where runtimes err by 20 %", off, 0.90},
		{"a guarded plan is no worse than WA-DPDS where runtimes err by half", guarded, 0.80},
	} {
		if c.n > 0 && c.sum/c.n < c.least {
			say("%s in %.1f %% of the cases, but %.0f %% are required", c.what, 100*c.sum/c.n, 100*c.least)
		}
	}
	return claims
}

type mean struct{ sum, n float64 }

func (m *mean) add(x float64) { m.sum, m.n = m.sum+x, m.n+1 }
