package moga

import "sort"

// breed returns the next population: parents are drawn in proportion to their fitness (Singh 2008, equation 14) and
// paired at random; each pair has two children.
func (s *search) breed(all []member) []member {
	pool := s.draw(all)
	s.rng.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
	next := make([]member, 0, len(all)+1)
	for i := 0; i < len(pool); i += 2 {
		a, b := pool[i].clone(), pool[min(i+1, len(pool)-1)].clone()
		s.cross(a, b)
		s.mutate(a)
		s.mutate(b)
		next = append(next, member{chosen: a}, member{chosen: b})
	}
	return next[:len(all)]
}

// draw draws as many parents as there are members, in proportion to fitness, with replacement.
func (s *search) draw(all []member) []Set {
	upTo, sum := make([]float64, len(all)), 0.0
	for i, f := range fitness(all, s.Sharing) {
		sum += f
		upTo[i] = sum
	}
	pool := make([]Set, len(all))
	for k := range pool {
		x := s.rng.Float64() * sum
		i := sort.SearchFloat64s(upTo, x)
		pool[k] = all[min(i, len(all)-1)].chosen
	}
	return pool
}

// cross swaps the bits of two sets between two random points.
func (s *search) cross(a, b Set) {
	from, to := s.rng.IntN(s.Slots+1), s.rng.IntN(s.Slots+1)
	for i := min(from, to); i < max(from, to); i++ {
		if a.Has(i) != b.Has(i) {
			a.flip(i)
			b.flip(i)
		}
	}
}

// mutate flips each bit with a probability of 1 ÷ bits.
func (s *search) mutate(a Set) {
	for i := range s.Slots {
		if s.rng.IntN(s.Slots) == 0 {
			a.flip(i)
		}
	}
}
