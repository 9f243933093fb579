package selection

import (
	"fmt"
	"math"

	"github.com/corral-pilot/corral"
)

// An Item is what one consumable of a task costs at a resource.
type Item struct {
	Type   string  `json:"type"`
	Amount float64 `json:"amount"`
	Rate   float64 `json:"rate"` // of the capability that serves it best
	Cost   float64 `json:"cost"` // amount ÷ rate
}

// Bill returns what a task costs at a resource, item by item in the order of the requirements (equation 2). A
// requirement that nothing serves is an error of kind Unsatisfiable that says why: the first one decides (algorithm 2).
// A rate or an amount that is not positive is one of kind Invalid.
func Bill(resource []Capability, task []Requirement) (items []Item, err error) {
	for _, r := range task {
		if err := r.Check(); err != nil {
			return nil, err
		}
		best, why := 0.0, ""
		for _, c := range resource {
			if err := c.Check(); err != nil {
				return nil, err
			}
			switch reason := c.Serves(r); {
			case reason == "":
				best = max(best, c.Rate)
			case c.Type == r.Type:
				why = reason
			}
		}
		if best == 0 {
			if why == "" {
				why = "there is none"
			}
			return nil, corral.Errorf(corral.Unsatisfiable, "%s: %s", r.Type, why)
		}
		items = append(items, Item{r.Type, r.Amount, best, r.Amount / best})
	}
	return items, nil
}

// Cost is the sum of a bill.
func Cost(items []Item) (sum float64) {
	for _, i := range items {
		sum += i.Cost
	}
	return sum
}

// None says that nothing was selected.
const None = -1

// Select returns the index of the highest affinity, of equal ones the first, and None if there is none (algorithm 3).
// What is not a number is never selected, nor is what is infinitely bad.
func Select(affinities []float64) int {
	best, at := math.Inf(-1), None
	for i, v := range affinities {
		if v > best { // false if v is not a number
			best, at = v, i
		}
	}
	return at
}

// Spread selects a resource for each of many tasks that are alike, one after another, where each takes a place: so many
// may run at once at a resource, and others wait for the time that one takes. A task goes where it ends first, which is
// what Select does as long as there are places. The paper sends all to one resource as if there were enough of it.
// Resources without a place get nothing; if none has one, the indices are None.
func Spread(tasks int, places []int, wait, takes []float64) []int {
	sent, chosen := make([]int, len(places)), make([]int, tasks)
	for k := range chosen {
		affinities := make([]float64, len(places))
		for i, n := range places {
			affinities[i] = math.Inf(-1)
			if n > 0 {
				affinities[i] = -(wait[i] + takes[i]*float64(1+sent[i]/n))
			}
		}
		if chosen[k] = Select(affinities); chosen[k] != None {
			sent[chosen[k]]++
		}
	}
	return chosen
}

// Shape is how a bag of tasks of a cpu each becomes pilots of whole nodes: how many nodes, and how many of their cpus
// are left over. With one cpu a node each task has a pilot of its own.
func Shape(tasks, nodeCPUs int) (nodes, left int, err error) {
	if tasks < 1 || nodeCPUs < 1 {
		return 0, 0, fmt.Errorf("%d tasks on nodes of %d cpus are no pilot", tasks, nodeCPUs)
	}
	nodes = (tasks + nodeCPUs - 1) / nodeCPUs
	return nodes, nodes*nodeCPUs - tasks, nil
}
