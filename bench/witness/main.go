// Command witness plans drawn problems and lets the independent player (bench/player) execute the plans: with runtimes
// and waits exactly as estimated, does every task end, when and at what cost, compared with what the plan says? It also
// compares each plan with the best list schedule of the player, and the shares that plans print with the shares of
// outcomes that the player draws.
//
//	make bench-witness                                    # 1,000 plans and 100 plans with shares
//	go run ./witness -player PROGRAM -problems 20         # in bench/
//	go run ./witness -player PROGRAM -problems 20 -nodes
//	go run ./witness -player PROGRAM -first 7 -problems 1 -keep DIR
//
// The player shares no code with Corral. Problems are of three kinds: those of the planner's own tests, workflows with
// heavy tails, and published workflows (-data). A quarter have pilots that are present already, some of which run
// tasks. Deadlines and budgets are those that another plan just meets, without any slack, or those of the best list
// schedule; a plan that the player executes a little later or dearer therefore misses them. With -nodes, no pilots are
// present; the sites have nodes, on which the player packs the hosts, and some tasks need GPUs or much memory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
)

// A bench specifies what to plan, and how.
type bench struct {
	player   string // the program
	first    int
	problems int
	shares   int // problems whose plans print shares
	draws    int // outcomes that the player draws of each
	data     string
	out      string // file for the results, as CSV; "": none
	keep     string // directory for the plans that do not come true; "": none
	exact    bool   // plans trust the estimates
	source   source
	stdout   io.Writer
}

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b := bench{stdout: stdout}
	flags := flag.NewFlagSet("witness", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&b.player, "player", "", "`program` that executes the plans")
	flags.IntVar(&b.first, "first", 0, "`number` of the first problem")
	flags.IntVar(&b.problems, "problems", 60, "`number` of problems, each with about ten goals")
	flags.IntVar(&b.shares, "shares", 0, "`number` of problems whose plans print shares of outcomes, one plan each")
	flags.IntVar(&b.draws, "draws", 2000, "`number` of outcomes that the player draws for each of these plans")
	flags.StringVar(&b.data, "data", "", "`directory` of published workflows; by default there are none")
	flags.StringVar(&b.out, "csv", "", "`file` for the result of each plan")
	flags.StringVar(&b.keep, "keep", "", "`directory` for the plans that do not come true, with their workflows")
	flags.BoolVar(&b.source.nodes, "nodes", false, "give the sites nodes, and the tasks needs of several kinds")
	flags.BoolVar(&b.exact, "exact", false, "make plans that trust the estimates; by default they allow for errors")
	if err := flags.Parse(args); err != nil {
		return rig.Misuse
	}
	if b.player == "" || b.problems+b.shares < 1 || b.draws < 1 || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "witness: it needs -player, and at least one problem")
		return rig.Misuse
	}
	return rig.Code(stderr, "witness", b.measure(ctx))
}

// A result compares a plan with its execution by the player. Durations are in seconds.
type result struct {
	seed, number  int // of the problem, and of its goal
	kind          string
	goal          plan.Goal
	from          string // what the goal's bounds are taken from
	tasks, pilots int
	took          time.Duration // for planning
	refused       bool          // the planner has no plan
	execution
	beside   float64 // executed cost ÷ that of the best list schedule within the deadline; 0: there is none
	solvable string  // for a goal without a plan: a list schedule or a plan that reaches it; "": none
	reason   string  // why the planner refused the goal
}

// An execution compares a plan with what the player makes of it.
type execution struct {
	stranded         bool
	makespan, cost   float64 // executed ÷ planned
	late, overBudget bool    // by more than tolerance
	crowded          bool    // hosts provably did not fit on the nodes
}

// tolerance is the share by which an execution may exceed a bound: the player does not model messages of milliseconds.
const tolerance = 0.001

// measure plans, executes, and prints the summary, after an interruption of what there is until then.
func (b bench) measure(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "witness-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if b.data != "" {
		if err := b.source.read(ctx, b.data); err != nil {
			return err
		}
	}
	var all []result
	for number := b.first; number < b.first+b.problems; number++ {
		results, err := b.problem(ctx, dir, number)
		if ctx.Err() != nil { // what there is, is reported
			break
		}
		if err != nil {
			return fmt.Errorf("problem %d: %w", number, err)
		}
		all = append(all, results...)
	}
	var printed []printed
	for number := b.first; number < b.first+b.shares; number++ {
		p, err := b.printed(ctx, dir, number)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return fmt.Errorf("shares of problem %d: %w", number, err)
		}
		printed = append(printed, p...)
	}
	if err := b.write(all); err != nil {
		return err
	}
	return errors.Join(b.summarize(all), b.compare(printed))
}

// An aim is a goal with the origin of its bounds.
type aim struct {
	plan.Goal
	from string
}

// free are the goals without bounds.
var free = []aim{{plan.Goal{Objective: plan.Makespan}, "none"}, {plan.Goal{Objective: plan.Cost}, "none"},
	{plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2}, "none"}}

// bounded returns goals whose bounds the fastest plan, the points of its front, or the best list schedules just meet.
func bounded(pl *plan.Plan, rivals []rival, unit cost.Unit) []aim {
	soonest, money := pl.Makespan, pl.Cost
	all := []aim{{plan.Goal{Objective: plan.Makespan, Budget: &money}, "plan"},
		{plan.Goal{Objective: plan.Cost, Deadline: soonest}, "plan"},
		{plan.Goal{Objective: plan.Cost, Deadline: 2 * soonest}, "twice the plan"},
		{plan.Goal{Objective: plan.CPUs, Deadline: soonest * 3 / 2}, "1.5 of the plan"}}
	if n := len(pl.Front); n > 2 {
		middle := pl.Front[n/2]
		all = append(all, aim{plan.Goal{Objective: plan.Cost, Deadline: middle.Makespan}, "front"},
			aim{plan.Goal{Objective: plan.Makespan, Budget: &middle.Cost}, "front"})
	}
	if n := len(rivals); n > 0 {
		some := rivals[n/2]
		budget := cost.Amount{Money: some.Cost, Unit: unit}
		all = append(all, aim{plan.Goal{Objective: plan.Cost, Deadline: some.Makespan}, "list schedule"},
			aim{plan.Goal{Objective: plan.Makespan, Budget: &budget}, "list schedule"})
	}
	if pl.PeakCPUs > 3 && len(pl.Assumed.Present) == 0 { // the limit includes the present pilots
		all = append(all, aim{plan.Goal{Objective: plan.Makespan, Bounds: plan.Bounds{MaxCPUs: pl.PeakCPUs / 2}},
			"half the cpus"})
	}
	return all
}

// problem plans one drawn problem for several goals.
func (b bench) problem(ctx context.Context, dir string, number int) (all []result, err error) {
	p, kind, err := b.source.problem(number)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "workflow.json")
	if err := writeWorkflow(file, p.Work); err != nil {
		return nil, err
	}
	rivals, err := b.rivals(ctx, dir, file, p)
	if err != nil {
		return nil, err
	}
	m := montecarlo.Model{Problem: p, Spread: montecarlo.DefaultSpread}
	if b.exact {
		m.Spread.Law, m.Spread.Size = "", 0
	}
	goals, met := free, []solution{}
	for i := 0; i < len(goals); i++ {
		began := time.Now()
		pl, err := m.Make(ctx, goals[i].Goal, planner.Options{Seed: uint64(number)})
		if err != nil {
			if corral.KindOf(err) == corral.Unsatisfiable {
				pl = &plan.Plan{Reasons: []string{err.Error()}}
			} else {
				return nil, err
			}
		}
		r := result{seed: number, number: i, kind: kind, goal: goals[i].Goal, from: goals[i].from,
			tasks: len(p.Work.Tasks), pilots: len(pl.Pilots), took: time.Since(began), refused: !pl.Feasible}
		if r.refused {
			r.reason = strings.Join(pl.Reasons, "; ")
		}
		if pl.Feasible {
			x, err := b.play(ctx, dir, file, pl, &r)
			if err != nil {
				return nil, err
			}
			if !r.stranded {
				met = append(met, x)
			}
			if r.judge(x, rivals); r.beside > 1.3 {
				b.complain(&r)
			}
		}
		if all = append(all, r); i == 0 && pl.Feasible {
			goals = append(goals[:len(goals):len(goals)], bounded(pl, rivals, p.Unit())...)
		}
	}
	for i := range all {
		if all[i].refused {
			all[i].solvable = solves(all[i].goal, rivals, met)
			b.complain(&all[i])
		}
	}
	return all, nil
}

// complain prints a result that a user would complain of.
func (b bench) complain(r *result) {
	what := ""
	switch {
	case r.solvable != "":
		what = fmt.Sprintf("is refused (%s), but %s reaches it", r.reason, r.solvable)
	case r.stranded:
		what = "leaves a task undone"
	case r.crowded:
		what = "has hosts that do not fit on the nodes"
	case r.late:
		what = "misses its deadline"
	case r.overBudget:
		what = "breaks its budget"
	case r.beside > 1.3:
		what = fmt.Sprintf("costs %.2f of a list schedule", r.beside)
	default:
		return
	}
	budget := "none"
	if r.goal.Budget != nil {
		budget = r.goal.Budget.String()
	}
	fmt.Fprintf(b.stdout, "%s, goal %d, %s, deadline %s, budget %s, by %s: %s (makespan %.4f, cost %.4f)\n",
		name(r.seed, r.kind), r.number, r.goal.Objective, time.Duration(r.goal.Deadline), budget, r.from, what,
		r.makespan, r.cost)
}
