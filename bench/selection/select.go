package selection

import (
	"fmt"
	"math"

	"github.com/corral-pilot/corral"
)

// An Item is the cost of one consumable of a task at a resource.
type Item struct {
	Type   string  `json:"type"`
	Amount float64 `json:"amount"`
	Rate   float64 `json:"rate"` // the best rate of all capabilities that serve the requirement
	Cost   float64 `json:"cost"` // amount ÷ rate
}

// Bill returns the cost of a task at a resource, with one item for each requirement in order (equation 2). If no
// capability serves a requirement, the error is of kind Unsatisfiable and contains the reason (algorithm 2). If a rate
// or an amount is not positive, the error is of kind Invalid.
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

// Cost returns the sum of a bill.
func Cost(items []Item) (sum float64) {
	for _, i := range items {
		sum += i.Cost
	}
	return sum
}

// None is the index that means that nothing was selected.
const None = -1

// Select returns the index of the highest affinity, the first such index in case of a tie, or None if no affinity
// qualifies (algorithm 3). NaN and −Inf are never selected.
func Select(affinities []float64) int {
	best, at := math.Inf(-1), None
	for i, v := range affinities {
		if v > best { // false for NaN
			best, at = v, i
		}
	}
	return at
}

// Spread selects a resource for each of many equal tasks in order. Each resource has a number of places for tasks at a
// time; further tasks wait for the duration of one task. A task is assigned to the resource where it ends first, which
// is the resource that Select chooses as long as places are free. The paper sends all tasks to one resource as if it
// were unlimited. Resources without places get no tasks; if no resource has places, all indices are None.
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

// Shape returns the number of whole nodes for a pilot that runs all tasks with one cpu each, and the number of unused
// cpus. With one cpu per node each task has a node of its own.
func Shape(tasks, nodeCPUs int) (nodes, left int, err error) {
	if tasks < 1 || nodeCPUs < 1 {
		return 0, 0, fmt.Errorf("a pilot needs at least one task and one cpu per node, got %d tasks and nodes of %d "+
			"cpus", tasks, nodeCPUs)
	}
	nodes = (tasks + nodeCPUs - 1) / nodeCPUs
	return nodes, nodes*nodeCPUs - tasks, nil
}
