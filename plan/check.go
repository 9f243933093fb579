package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/corral-pilot/corral"
)

// Check returns an error for the first assumption that no planner would make, such as a negative time. A plan can
// contain such assumptions because users may edit it. Package plan/validator checks the plan itself.
func (a *Assumed) Check() error {
	if err := notNegative([]number{{"hop_s", a.Hop}, {"reuse_s", a.Reuse}, {"leave_s", a.Leave}}); err != nil {
		return err
	}
	if a.Rate < 0 {
		return fmt.Errorf("tasks_per_s is %g", a.Rate)
	}
	if err := a.Errors.check(); err != nil {
		return err
	}
	for i := range a.Queues {
		if err := a.Queues[i].check(); err != nil {
			return fmt.Errorf("queues[%d]: %w", i, err)
		}
	}
	for i, t := range a.Transfers {
		if t.Latency < 0 || t.Bandwidth < 0 {
			return fmt.Errorf("transfers[%d]: latency_s is %s, bytes_per_s %g", i, t.Latency, t.Bandwidth)
		}
	}
	for _, site := range slices.Sorted(maps.Keys(a.Speeds)) {
		if a.Speeds[site] < 0 {
			return fmt.Errorf("the speed of %s is %g", site, a.Speeds[site])
		}
	}
	return nil
}

// A number is an assumed time with its field name in the document.
type number struct {
	name string
	is   corral.Seconds
}

func notNegative(all []number) error {
	for _, n := range all {
		if n.is < 0 {
			return fmt.Errorf("%s is %s", n.name, n.is)
		}
	}
	return nil
}

// check implements Check for one queue.
func (q *Queue) check() error {
	err := notNegative([]number{{"overhead_s", q.Overhead}, {"walltime_s", q.Walltime}, {"margin_s", q.Margin},
		{"billed_minimum_s", q.Minimum}, {"billed_period_s", q.Period}})
	if err != nil {
		return err
	}
	least := min(q.CPUs, q.Pilots, q.Hosts, q.HostCPUs, q.MemoryMiB, q.GPUs)
	if least < 0 || q.Speed < 0 || q.Price < 0 {
		return errors.New("a limit, the speed or the price is negative")
	}
	if err := checkRoom(q.Room); err != nil {
		return err
	}
	for i, w := range q.Waits {
		if w.Planned < 0 || w.Walltime < 0 || len(w.Waits) > 0 && w.Waits[0] < 0 || !slices.IsSorted(w.Waits) {
			return fmt.Errorf("waits[%d]: the waits are negative or not in ascending order", i)
		}
	}
	return nil
}
