package main

import (
	"fmt"
	"io"
	"time"
)

// A measured is one workflow on a number of workers.
type measured struct {
	name     string
	tasks    int
	workers  int
	rule     string // the requested rule
	how      string // the resulting rule
	schedule time.Duration

	took      time.Duration // 0: it was not run
	own       time.Duration // list schedule of the measured durations of its tasks
	simulated time.Duration
}

func newCase(a asleep, workers int, rule, how string) measured {
	return measured{name: a.wf.Name, tasks: len(a.times), workers: workers, rule: rule, how: how,
		schedule: a.listSchedule(workers)}
}

// over returns how much longer than a list schedule something took, in percent.
func over(took, schedule time.Duration) float64 { return 100 * (float64(took)/float64(schedule) - 1) }

// near is how much longer than the list schedule a run may take, in percent.
const near = 5

// A tally counts cases that are near the list schedule.
type tally struct {
	cases, near int
	worst       measured
	most        float64
}

func (t *tally) add(c measured, by float64) {
	t.cases++
	if by <= near {
		t.near++
	}
	if t.cases == 1 || by > t.most {
		t.worst, t.most = c, by
	}
}

func (t *tally) String() string {
	if t.cases == 0 {
		return "none"
	}
	return fmt.Sprintf("%d of %d, at worst %+.1f %% (%s, %d workers, %s)", t.near, t.cases, t.most, t.worst.name,
		t.worst.workers, t.worst.how)
}

// A report is a table that is written case by case, so that an interrupted one is not lost.
type report struct {
	out            io.Writer
	run, own, sims tally
	err            error
}

func newReport(out io.Writer) *report {
	r := &report{out: out}
	r.print("| workflow | tasks | workers | clustering | list schedule s ")
	r.print("| taken s | over %% | over that of its tasks %% | simulated s | over %% |\n")
	r.print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	return r
}

func (r *report) print(format string, args ...any) {
	if _, err := fmt.Fprintf(r.out, format, args...); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *report) add(c measured) error {
	taken, beyond, beyondOwn := "–", "–", "–"
	if c.took > 0 {
		taken, beyond = fmt.Sprintf("%.2f", c.took.Seconds()), fmt.Sprintf("%+.1f", over(c.took, c.schedule))
		beyondOwn = fmt.Sprintf("%+.1f", over(c.took, c.own))
		r.run.add(c, over(c.took, c.schedule))
		r.own.add(c, over(c.took, c.own))
	}
	r.sims.add(c, over(c.simulated, c.schedule))
	how := c.how
	if how != c.rule {
		how = c.rule + ": " + how
	}
	r.print("| %s | %d | %d | %s | %.2f | %s | %s | %s | %.2f | %+.1f |\n", c.name, c.tasks, c.workers, how,
		c.schedule.Seconds(), taken, beyond, beyondOwn, c.simulated.Seconds(), over(c.simulated, c.schedule))
	return r.err
}

// end prints how many cases are within the limit.
func (r *report) end() error {
	r.print("\nWithin %d %% of the list schedule: of runs %s; of simulations %s.\n", near, &r.run, &r.sims)
	r.print("Within %d %% of the list schedule of what the tasks took, each with its process's start and end: %s.\n",
		near, &r.own)
	return r.err
}
