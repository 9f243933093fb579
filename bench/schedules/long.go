package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/clustering"
	"github.com/corral-pilot/corral/workflow/dag"
)

// USC HPCC as in E2.5 and E2.6: at most 30 jobs of a user at a time, for at most a day. Its size and load are not
// published: it is assumed to have twice the processors of the widest pilot, under EASY, empty or with the load of a
// model.
const (
	maxUserRun = 30
	day        = 24 * time.Hour
	processors = 1024
	instants   = 6 // times at which a workflow begins, with a background of that many jobs
	background = 5000

	leastGroups = 60 // per level, so that none takes more than a day
)

// mapped returns the runtime of a task of Epigenome on HPCC: the mean for the 512 map tasks is 2.5 hours (E2.5), with
// the spread of table 5.6; the others take their measured runtimes.
func mapped(t *workflow.Task) time.Duration {
	if t.Name == mapReads.name {
		return time.Duration(t.Runtime.Seconds() * 9000 / mapReads.mean * float64(time.Second))
	}
	return t.Runtime
}

// hpcc returns queues of the machine at several times under a load; for load 0, a single empty one.
func hpcc(load float64) []*queue.Queue {
	m := queue.Machine{Processors: processors, Policy: queue.EASY, MaxUserRun: maxUserRun, Walltime: day}
	if load == 0 {
		return []*queue.Queue{queue.New(m, nil)}
	}
	others := workload.Draw(background, processors, load, 1)
	for i := range others {
		others[i].User = i // different users: only our jobs are limited
	}
	at := make([]time.Duration, instants)
	for i := range at {
		at[i] = others[len(others)-1].Submit / 10 * time.Duration(i+1)
	}
	return queue.States(m, others, at)
}

// meanOver returns the mean of a duration over queues.
func meanOver(queues []*queue.Queue, took func(q *queue.Queue) (time.Duration, error)) (sum time.Duration, err error) {
	for _, q := range queues {
		t, err := took(q)
		if err != nil {
			return 0, err
		}
		sum += t / time.Duration(len(queues))
	}
	return sum, nil
}

// An hpccCase is a way to run Epigenome on HPCC.
type hpccCase struct {
	name      string
	groups    int  // 0: task by task
	parted    bool // groups are split if no time is left, as Corral does; the thesis did not
	blocks    blocks
	published string
}

// on returns a workflow as pilots run it in this case.
func (h hpccCase) on(a asleep) (asleep, clustering.Rule) {
	switch {
	case h.groups == 0:
		return a, clustering.Rule{}
	case h.parted:
		return a, clustering.Levels(h.groups)
	}
	return inOnePiece(a.wf.Name, jobs(a.wf.Graph, a.times, dag.ByLevel(a.wf.Graph, h.groups, nil))), clustering.Rule{}
}

// at compares a case under a load.
func (s *study) at(load float64, queues []*queue.Queue, a asleep, h hpccCase) (c comparison, err error) {
	c = comparison{experiment: "E2.5", name: fmt.Sprintf("%s, load %g", h.name, load), published: h.published}
	if h.blocks.hosts > maxUserRun {
		c.experiment = "E2.6"
	}
	c.schedule = a.listSchedule(h.blocks.hosts)
	var of [][]int
	if h.groups > 0 {
		of = dag.ByLevel(a.wf.Graph, h.groups, nil)
	}
	all := jobs(a.wf.Graph, a.times, of)
	work, rule := h.on(a)
	c.direct, err = meanOver(queues, func(q *queue.Queue) (time.Duration, error) {
		return grid{way: abe.job, gap: pbs.gap, queue: q}.run(all)
	})
	if err != nil {
		return c, err
	}
	if c.pilots, err = h.blocks.run(work, rule, place{}, pool); err != nil {
		return c, err
	}
	c.provisioned, err = meanOver(queues, func(q *queue.Queue) (time.Duration, error) {
		return h.blocks.run(work, rule, place{abe.setup, abe.allocation, q}, pool)
	})
	s.comparisons = append(s.comparisons, c)
	return c, err
}

// two are the blocks of E2.5, and overlapped are the same blocks without the gap between them.
var (
	two        = blocks{hosts: maxUserRun, walltime: day}
	overlapped = blocks{hosts: maxUserRun, walltime: day, overlap: 4 * time.Hour}
)

var hpccCases = []hpccCase{
	{name: "Epigenome of 2057, 30 cpus", blocks: two, published: "32 %"},
	byLevel,
	{name: "the same, blocks that overlap by 4 h", groups: leastGroups, blocks: overlapped, published: "–"},
	{name: "the same, one after another, groups taken apart", groups: leastGroups, parted: true, blocks: two,
		published: "–"},
	{name: "Epigenome of 2057, pilot of 128", blocks: blocks{hosts: 128, walltime: 12 * time.Hour}, published: "–"},
	{name: "Epigenome of 2057, pilot of 256", blocks: blocks{hosts: 256, walltime: 6 * time.Hour}, published: "–"},
	{name: "Epigenome of 2057, pilot of 512", blocks: blocks{hosts: 512, walltime: 4 * time.Hour},
		published: "91 % (211 of 2,349 min)"},
}

// byLevel is the case of E2.5 that is slower than task by task.
var byLevel = hpccCase{name: "the same, by level in 60 groups", groups: leastGroups, blocks: two, published: "10 %"}

// epigenome simulates E2.5, 30 processors in blocks of a day, and E2.6, one pilot of 128 to 512.
func (s *study) epigenome(draws int) error {
	wf, err := epigenome(3, 512, 1)
	if err != nil {
		return err
	}
	a := asItIs(wf, mapped)
	for _, load := range []float64{0, 0.7, 0.9} {
		queues := hpcc(load)
		for i, h := range hpccCases {
			c, err := s.at(load, queues, a, h)
			if err != nil {
				return err
			}
			switch {
			case i == 0:
				s.claim(claim{row: "F53", what: fmt.Sprintf("task by task pilots are faster, load %g, by", load),
					got: less(c.pilots, c.direct), high: 100, unit: "%"})
			case load == 0 && h.blocks.hosts == 512:
				s.claim(claim{row: "F54", what: "512 cpus are faster than 30 jobs by a factor of",
					got: float64(c.direct) / float64(c.pilots), low: 10, high: 1000})
				fallthrough
			case load == 0 && h.blocks.hosts > maxUserRun:
				s.claim(claim{row: "F54", what: h.name + ": longer than the list schedule by",
					got: over(c.pilots, c.schedule), low: -1, high: 10, unit: "%"})
			}
		}
	}
	return s.imbalance(draws)
}

// imbalance checks the statement of E2.5 about blocks: with groups of a level, the second block waits for the slowest
// group of the first. Draws with a group that does not fit into a block are omitted: 60 groups are too few for them.
func (s *study) imbalance(draws int) error {
	var slower, overlapping, parted []float64
	for seed := range uint64(draws) {
		wf, err := epigenome(3, 512, seed+1)
		if err != nil {
			return err
		}
		a := asItIs(wf, mapped)
		groups, _ := byLevel.on(a)
		if slices.Max(groups.times) > longestInBlock {
			continue
		}
		plain, err := two.run(a, clustering.Rule{}, place{}, pool)
		if err != nil {
			return err
		}
		for _, of := range []struct {
			work   asleep
			rule   clustering.Rule
			blocks blocks
			to     *[]float64
		}{
			{groups, clustering.Rule{}, two, &slower}, {groups, clustering.Rule{}, overlapped, &overlapping},
			{a, clustering.Levels(leastGroups), two, &parted},
		} {
			took, err := of.blocks.run(of.work, of.rule, place{}, pool)
			if err != nil {
				return err
			}
			*of.to = append(*of.to, over(took, plain))
		}
	}
	n := len(slower)
	if n == 0 {
		return fmt.Errorf("in none of %d draws 60 groups fit into a day", draws)
	}
	what := fmt.Sprintf("by level two blocks are slower than task by task, median of %d draws of %d, by", n, draws)
	s.claim(claim{row: "F53", what: what, got: median(slower), low: 0, high: 100, unit: "%"})
	s.claim(claim{row: "F53", what: "the same, where blocks overlap", got: median(overlapping), low: -100, unit: "%"})
	s.claim(claim{row: "F53", what: "the same, where groups are taken apart", got: median(parted), low: -100,
		unit: "%"})
	return nil
}

// longestInBlock is the time that a block has for tasks: a day minus the time that pilots and their workers reserve for
// an orderly end.
const longestInBlock = day - 3*time.Minute
