// Command witness plans drawn problems and lets the independent player (bench/player) execute the plans: with runtimes
// and waits exactly as estimated, does every task end, when and at what cost, compared with what the plan says?
//
//	make bench-witness                              # 400 plans, two minutes
//	go run ./witness -player PROGRAM -problems 150  # in bench/
//
// A quarter of the problems have pilots that are present already, some of which run tasks.
//
// The player shares no code with Corral. It matches by the documented rule and starts no task in advance on a busy
// worker, as Corral does, so that single tasks change their places. Deadlines and budgets are those that another plan
// just meets, without any slack; a plan that the player executes a little later or dearer therefore misses them.
package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// A bench specifies what to plan, and how.
type bench struct {
	player   string // the program
	problems int
	out      string // file for the results, as CSV; "": none
	stdout   io.Writer
}

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b := bench{stdout: stdout}
	flags := flag.NewFlagSet("witness", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&b.player, "player", "", "`program` that executes the plans")
	flags.IntVar(&b.problems, "problems", 60, "`number` of problems, each with seven goals")
	flags.StringVar(&b.out, "csv", "", "`file` for the result of each plan")
	if err := flags.Parse(args); err != nil {
		return rig.Misuse
	}
	if b.player == "" || b.problems < 1 || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "witness: it needs -player, and at least one problem")
		return rig.Misuse
	}
	return rig.Code(stderr, "witness", b.measure(ctx))
}

// A result compares a plan with its execution by the player. Durations are in seconds.
type result struct {
	seed             int
	goal             plan.Goal
	tasks, pilots    int
	took             time.Duration // for planning
	stranded         bool
	makespan, cost   float64 // executed ÷ planned
	late, overBudget bool
}

// measure plans, executes, and prints the summary. It fails if a plan leaves a task undone.
func (b bench) measure(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "witness-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var all []result
	none := 0
	for seed := range b.problems {
		results, refused, err := b.problem(ctx, dir, seed)
		if err != nil {
			return fmt.Errorf("problem %d: %w", seed, err)
		}
		all, none = append(all, results...), none+refused
	}
	if len(all) == 0 {
		return errors.New("no problem has a plan")
	}
	if err := b.write(all); err != nil {
		return err
	}
	return b.summarize(all, none)
}

// problem plans one drawn problem for several goals.
func (b bench) problem(ctx context.Context, dir string, seed int) (all []result, refused int, err error) {
	p, err := plantest.Problem(uint64(seed))
	if err != nil {
		return nil, 0, err
	}
	for i := range p.Work.Tasks { // the player reads sizes of files, and a drawn task has none
		p.Work.Task(i).Bytes = 0
	}
	for i := range p.Sites {
		p.Sites[i].Transfer = plan.Transfer{}
	}
	if seed%4 == 3 {
		plantest.AddPresent(&p, uint64(seed))
	}
	file := filepath.Join(dir, "workflow.json")
	if err := writeWorkflow(file, p.Work); err != nil {
		return nil, 0, err
	}
	m := montecarlo.Model{Problem: p}
	goals := []plan.Goal{{Objective: plan.Makespan}, {Objective: plan.Cost},
		{Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2}}
	for i := 0; i < len(goals); i++ {
		began := time.Now()
		pl, err := m.Make(ctx, goals[i], planner.Options{Seed: uint64(seed)})
		if err != nil {
			return nil, 0, err
		}
		if !pl.Feasible {
			refused++
			continue
		}
		r := result{seed: seed, goal: goals[i], tasks: len(p.Work.Tasks), pilots: len(pl.Pilots),
			took: time.Since(began)}
		if err := b.play(ctx, dir, file, pl, &r); err != nil {
			return nil, 0, err
		}
		all = append(all, r)
		if i == 0 {
			soonest, money := pl.Makespan, pl.Cost
			goals = append(goals, plan.Goal{Objective: plan.Makespan, Budget: &money},
				plan.Goal{Objective: plan.Cost, Deadline: soonest},
				plan.Goal{Objective: plan.Cost, Deadline: 2 * soonest},
				plan.Goal{Objective: plan.CPUs, Deadline: soonest * 3 / 2})
		}
	}
	return all, refused, nil
}

// writeWorkflow writes a workflow for the player.
func writeWorkflow(file string, w plan.Work) error {
	wf := workflow.Workflow{Name: w.Name, Graph: w.Graph, Tasks: make([]workflow.Task, len(w.Tasks))}
	for i, t := range w.Tasks {
		wf.Tasks[i] = workflow.Task{ID: t.ID, Name: t.Kind, Resources: t.Needs, Estimate: t.Runtime}
	}
	var text bytes.Buffer
	if err := wfformat.Write(&text, &wf); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o600)
}

// An execution is the part of the player's answer that is compared.
type execution struct {
	Tasks int `json:"tasks"`
	Play  struct {
		Finished int      `json:"finished_tasks"`
		Makespan *float64 `json:"makespan_s"`
		Cost     struct {
			Amount float64 `json:"amount"`
		} `json:"cost"`
		InTime   *bool `json:"deadline_kept"`
		InBudget *bool `json:"budget_kept"`
	} `json:"play"`
}

// play lets the player execute a plan.
func (b bench) play(ctx context.Context, dir, workflow string, pl *plan.Plan, r *result) error {
	text, err := json.Marshal(pl)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "plan.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, b.player, "-o", "json", "-estimates", "plan", file, workflow)
	cmd.Stderr = &complaint
	answer, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return err
	}
	var x execution
	if err := json.Unmarshal(answer, &x); err != nil {
		return fmt.Errorf("%s: %w: %s", b.player, err, complaint.String())
	}
	r.stranded = x.Play.Finished < x.Tasks || x.Play.Makespan == nil
	if r.stranded {
		return nil
	}
	r.makespan = *x.Play.Makespan / time.Duration(pl.Makespan).Seconds()
	if r.cost = 1; x.Play.Cost.Amount > 0 || pl.Cost.Money > 0 { // the present pilots may suffice
		r.cost = x.Play.Cost.Amount / pl.Cost.Money.Units()
	}
	r.late = x.Play.InTime != nil && !*x.Play.InTime
	r.overBudget = x.Play.InBudget != nil && !*x.Play.InBudget
	return nil
}

// summarize prints the counts and the distributions.
func (b bench) summarize(all []result, none int) error {
	count := func(is func(result) bool) (n int) {
		for _, r := range all {
			if is(r) {
				n++
			}
		}
		return n
	}
	stranded := count(func(r result) bool { return r.stranded })
	fmt.Fprintf(b.stdout, "%d plans (%d goals without one): %d leave a task undone, %d miss their deadline, %d break "+
		"their budget\n", len(all), none, stranded, count(func(r result) bool { return r.late }),
		count(func(r result) bool { return r.overBudget }))
	for _, q := range []struct {
		what string
		of   func(result) float64
	}{
		{"makespan, executed ÷ planned", func(r result) float64 { return r.makespan }},
		{"cost, executed ÷ planned", func(r result) float64 { return r.cost }},
		{"time for planning, s", func(r result) float64 { return r.took.Seconds() }},
	} {
		var values []float64
		for _, r := range all {
			if !r.stranded {
				values = append(values, q.of(r))
			}
		}
		slices.Sort(values)
		at := func(share float64) float64 { return values[int(share*float64(len(values)-1))] }
		fmt.Fprintf(b.stdout, "%-30s p5 %.3f, median %.3f, p95 %.3f, most %.3f\n", q.what, at(0.05), at(0.5), at(0.95),
			at(1))
	}
	if stranded > 0 {
		return corral.Errorf(corral.Failed, "%d of %d plans leave a task undone", stranded, len(all))
	}
	return nil
}

// write writes the result of each plan as CSV.
func (b bench) write(all []result) error {
	if b.out == "" {
		return nil
	}
	var text bytes.Buffer
	lines := csv.NewWriter(&text)
	_ = lines.Write([]string{"problem", "objective", "deadline_s", "budget", "tasks", "pilots", "undone", "late",
		"over_budget", "makespan_ratio", "cost_ratio"})
	ratio := func(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }
	for _, r := range all {
		budget := ""
		if r.goal.Budget != nil {
			budget = r.goal.Budget.String()
		}
		_ = lines.Write([]string{strconv.Itoa(r.seed), string(r.goal.Objective),
			strconv.FormatFloat(time.Duration(r.goal.Deadline).Seconds(), 'f', -1, 64), budget, strconv.Itoa(r.tasks),
			strconv.Itoa(r.pilots), strconv.FormatBool(r.stranded), strconv.FormatBool(r.late),
			strconv.FormatBool(r.overBudget), ratio(r.makespan), ratio(r.cost)})
	}
	if lines.Flush(); lines.Error() != nil {
		return lines.Error() // unreachable: the text is in memory
	}
	return os.WriteFile(b.out, text.Bytes(), 0o644)
}
