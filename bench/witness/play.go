package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

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

// An answer is the part of the player's answer that is compared.
type answer struct {
	Tasks int `json:"tasks"`
	Play  struct {
		Finished int      `json:"finished_tasks"`
		Makespan *float64 `json:"makespan_s"`
		Crowded  int      `json:"node_violations"`
		Cost     struct {
			Amount cost.Money `json:"amount"`
		} `json:"cost"`
	} `json:"play"`
	Draws struct {
		Finished share  `json:"finished"`
		InTime   *share `json:"within_deadline"`
	} `json:"draws"`
	Rivals []rival `json:"rivals"`
}

// A share is a part of the player's draws.
type share struct {
	Share float64 `json:"share"`
}

// A rival is one of the player's list schedules.
type rival struct {
	Site     string         `json:"site"`
	Pilots   int            `json:"pilots"`
	CPUs     int            `json:"cpus"`
	Makespan corral.Seconds `json:"makespan_s"`
	Cost     cost.Money     `json:"cost"`
}

// A solution is a way to complete a workflow, as the player executes it.
type solution struct {
	makespan corral.Seconds
	cost     cost.Money
	cpus     int // at once
}

// ask executes the player, with a plan in a file.
func (b bench) ask(ctx context.Context, dir, workflow string, pl *plan.Plan, flags ...string) (x answer, err error) {
	text, err := json.Marshal(pl)
	if err != nil {
		return x, err
	}
	file := filepath.Join(dir, "plan.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return x, err
	}
	var complaint bytes.Buffer
	flags = append([]string{"-o", "json", "-reserve"}, flags...)
	cmd := exec.CommandContext(ctx, b.player, append(flags, file, workflow)...)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return x, err
	}
	if err := json.Unmarshal(out, &x); err != nil {
		return x, fmt.Errorf("%s: %w: %s", b.player, err, complaint.String())
	}
	return x, nil
}

// rivals returns the player's best list schedules, the fastest first.
func (b bench) rivals(ctx context.Context, dir, workflow string, p plan.Problem) ([]rival, error) {
	pl, err := frame(p)
	if err != nil {
		return nil, err
	}
	x, err := b.ask(ctx, dir, workflow, pl, "-rivals")
	return x.Rivals, err
}

// play lets the player execute a plan, and returns what it makes of it.
func (b bench) play(ctx context.Context, dir, workflow string, pl *plan.Plan, r *result) (s solution, err error) {
	x, err := b.ask(ctx, dir, workflow, pl, "-estimates", "plan")
	if err != nil {
		return s, err
	}
	if r.execution = x.beside(pl); !r.stranded {
		s = solution{corral.Seconds(*x.Play.Makespan * float64(time.Second)), x.Play.Cost.Amount, pl.PeakCPUs}
	}
	if r.stranded || r.late || r.overBudget || r.crowded {
		b.complain(r)
		return s, b.store(dir, workflow, r)
	}
	return s, nil
}

// beside compares an execution with its plan.
func (x answer) beside(pl *plan.Plan) (e execution) {
	e.crowded = x.Play.Crowded > 0
	if e.stranded = x.Play.Finished < x.Tasks || x.Play.Makespan == nil; e.stranded {
		return e
	}
	e.makespan = *x.Play.Makespan / time.Duration(pl.Makespan).Seconds()
	if e.cost = 1; x.Play.Cost.Amount > 0 || pl.Cost.Money > 0 { // the present pilots may suffice
		e.cost = x.Play.Cost.Amount.Units() / pl.Cost.Money.Units()
	}
	budget := pl.Goal.Budget
	over := func(executed, bound float64) bool { return executed > bound*(1+tolerance) }
	e.late = pl.Goal.Deadline > 0 && over(*x.Play.Makespan, time.Duration(pl.Goal.Deadline).Seconds())
	e.overBudget = budget != nil && over(x.Play.Cost.Amount.Units(), budget.Money.Units())
	return e
}

// store keeps a plan and its workflow.
func (b bench) store(dir, workflow string, r *result) error {
	if b.keep == "" {
		return nil
	}
	to := filepath.Join(b.keep, fmt.Sprintf("%d-%d", r.seed, r.number))
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, file := range []string{workflow, filepath.Join(dir, "plan.json")} {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// judge compares the executed cost with that of the best list schedule within the goal's bounds, if the goal is a low
// cost.
func (r *result) judge(s solution, rivals []rival) {
	if r.stranded || r.goal.Objective != plan.Cost {
		return
	}
	for _, x := range rivals {
		if r.goal.Deadline > 0 && x.Makespan > r.goal.Deadline || x.Cost == 0 {
			continue
		}
		r.beside = max(r.beside, float64(s.cost)/float64(x.Cost))
	}
}

// solves names a list schedule or another plan of the problem that reaches a goal as the player executes it, or returns
// "".
func solves(goal plan.Goal, rivals []rival, met []solution) string {
	within := func(makespan corral.Seconds, money cost.Money, cpus int) bool {
		return (goal.Deadline == 0 || makespan <= goal.Deadline) &&
			(goal.Budget == nil || money <= goal.Budget.Money) && (goal.MaxCPUs == 0 || cpus <= goal.MaxCPUs)
	}
	for _, x := range rivals {
		if within(x.Makespan, x.Cost, x.Pilots*x.CPUs) {
			return fmt.Sprintf("a list schedule (%d pilots of %d cpus at %s: %s, %s)", x.Pilots, x.CPUs, x.Site,
				time.Duration(x.Makespan), cost.Amount{Money: x.Cost})
		}
	}
	for _, s := range met {
		if within(s.makespan, s.cost, s.cpus) {
			return fmt.Sprintf("another plan (%s, %s)", time.Duration(s.makespan), cost.Amount{Money: s.cost})
		}
	}
	return ""
}
