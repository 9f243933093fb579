package moga

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/corral-pilot/corral/plan/cost"
)

// A Problem is the input of a search.
type Problem struct {
	Slots int   // bits of a chromosome
	Given []Set // members of the first population; not modified

	// Evaluator returns a function that evaluates a choice; its second result is false if the choice is infeasible.
	// Each worker has its own function. All must return the same results.
	Evaluator func() func(chosen Set) (cost.Point, bool)
}

// Options are the parameters of a search. The zero value selects the parameters of the thesis.
type Options struct {
	Context     context.Context // cancels the search, which then returns the context's cause; nil: never
	Population  int             // 0: 100
	Generations int             // after the first one; 0: 10; negative: none
	Sharing     float64         // σ: maximum distance of neighbours, relative to the population's range; 0: 0.041
	Seed        uint64
	Workers     int  // number of parallel workers; 0: one per processor
	Published   bool // draw the whole first population, without given chromosomes
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

// A member is a chromosome of a population with its evaluation.
type member struct {
	chosen   Set
	point    cost.Point
	feasible bool
}

// A search is the state of one search.
type search struct {
	Problem
	Options
	rng     *rand.Rand
	known   map[string]member // :: key of a chromosome → its evaluation
	scores  []func(Set) (cost.Point, bool)
	archive []Member // each feasible choice once, in the order of evaluation
}

// Search returns the front that it finds, which is empty if it evaluated no feasible choice. The only possible error is
// the cause of the context's cancellation.
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
	return front(s.archive), nil
}

// first returns the first population: uniformly random bits, and the given chromosomes.
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

// evaluate evaluates each member and archives the feasible ones. Unknown chromosomes are evaluated by workers in
// parallel; the order in which they finish does not matter, because each result is stored in its own place. Once the
// context is cancelled, the remaining members and the archive are invalid.
func (s *search) evaluate(all []member) {
	var fresh []int // indices of members, one for each unknown chromosome
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
		m := all[i]
		if s.known[m.chosen.key()] = m; m.feasible {
			s.archive = append(s.archive, Member{m.point, m.chosen})
		}
	}
	for i := range all {
		all[i] = s.known[all[i].chosen.key()]
	}
}
