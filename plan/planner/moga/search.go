package moga

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/corral-pilot/corral/plan/cost"
)

// A Problem is what is searched.
type Problem struct {
	Slots int   // bits of a chromosome
	Given []Set // members of the first population; they are not changed

	// Evaluator returns a function that says what a choice comes to, false if it is not feasible. Each worker has one
	// of its own. All must say the same.
	Evaluator func() func(chosen Set) (cost.Point, bool)
}

// Options are the constants of a search. The zero value has the thesis's.
type Options struct {
	Context     context.Context // ends the search, which then fails with the context's cause; nil: nothing does
	Population  int             // 0: 100
	Generations int             // after the first one; 0: 10; negative: none
	Sharing     float64         // σ: how close neighbours are, as a part of the population's range; 0: 0.041
	Seed        uint64
	Workers     int  // that evaluate side by side; 0: one for each processor
	Published   bool // no chromosome of the first population is given: all are drawn
}

func (o Options) defaults() Options {
	if o.Context == nil {
		o.Context = context.Background()
	}
	if o.Population <= 0 {
		o.Population = 100
	}
	if o.Generations == 0 {
		o.Generations = 10
	}
	if o.Sharing <= 0 {
		o.Sharing = 0.041
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return o
}

// A member is a chromosome of a population, with what it comes to.
type member struct {
	chosen   Set
	point    cost.Point
	feasible bool
}

// A search is one on its way.
type search struct {
	Problem
	Options
	rng     *rand.Rand
	known   map[string]member // :: key of a chromosome → what it comes to
	scores  []func(Set) (cost.Point, bool)
	archive Front
}

// Search returns the front that it finds: empty if no choice that it met was feasible. The only error is the cause of a
// context that has ended.
func Search(p Problem, o Options) (Front, error) {
	s := &search{Problem: p, Options: o.defaults(), known: map[string]member{}}
	s.rng = rand.New(rand.NewPCG(s.Seed, uint64(p.Slots)))
	for range s.Workers {
		s.scores = append(s.scores, p.Evaluator())
	}
	all := s.first()
	s.evaluate(all)
	for generation := 0; generation < s.Generations && s.Context.Err() == nil; generation++ {
		all = s.breed(all)
		s.evaluate(all)
	}
	if s.Context.Err() != nil {
		return nil, context.Cause(s.Context)
	}
	return s.archive, nil
}

// first returns the first population: bits that are drawn, each with even odds, and what is given.
func (s *search) first() []member {
	all := make([]member, s.Population)
	for i := range all {
		all[i].chosen = newSet(s.Slots)
		for w := range all[i].chosen {
			all[i].chosen[w] = s.rng.Uint64()
		}
		all[i].chosen.trim(s.Slots)
	}
	if !s.Published {
		for i, g := range s.Given[:min(len(s.Given), len(all))] {
			all[i].chosen = g.clone()
		}
	}
	return all
}

// evaluate says of each member what it comes to, and archives it. What is not known yet is evaluated by workers that
// take one after another; the order in which they end does not matter, since results have their places. Once the
// context has ended, what was not evaluated is worth nothing, and so is the archive.
func (s *search) evaluate(all []member) {
	var fresh []int // indices of members, one for each chromosome that is not known
	pending := map[string]bool{}
	for i := range all {
		if key := all[i].chosen.key(); !pending[key] {
			if _, ok := s.known[key]; !ok {
				pending[key] = true
				fresh = append(fresh, i)
			}
		}
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for _, score := range s.scores[:min(len(s.scores), len(fresh))] {
		wg.Go(func() {
			for k := next.Add(1); k <= int64(len(fresh)) && s.Context.Err() == nil; k = next.Add(1) {
				m := &all[fresh[k-1]]
				m.point, m.feasible = score(m.chosen)
			}
		})
	}
	wg.Wait()
	for _, i := range fresh {
		s.known[all[i].chosen.key()] = all[i]
	}
	for i := range all {
		all[i] = s.known[all[i].chosen.key()]
		if all[i].feasible {
			s.archive = s.archive.with(Member{all[i].point, all[i].chosen})
		}
	}
}
