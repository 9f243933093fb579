package run

import (
	"maps"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow"
)

// addRules adds the rules from the workflow's controls to a spec that contains the tasks.
func addRules(spec *execution.Spec, flow *workflow.Workflow, o corral.RunOptions) error {
	unless, err := execution.ExitStatuses(o.RetryUnless)
	if err != nil {
		return err
	}
	spec.Losses = max(0, o.CrashLimit)
	m := ruleMaker{categories: map[string]int{}, priority: o.Priority}
	if len(unless) > 0 || o.Priority != 0 {
		m.silent = &execution.Rules{UnlessExit: unless, Priority: o.Priority}
	}
	for _, name := range slices.Sorted(maps.Keys(flow.Categories)) {
		spec.Limits = append(spec.Limits, flow.Categories[name])
		m.categories[name] = len(spec.Limits)
	}
	for i := range flow.Tasks {
		spec.Tasks[i].Rules = m.rules(flow.Tasks[i].Control)
	}
	if needsSubs(flow) {
		for _, s := range flow.Subworkflows {
			sub := execution.SubSpec{Name: s.Name, First: s.First, End: s.End, Job: s.Job, Rules: m.ofSub(s.Control)}
			if s.Retries != nil {
				sub.Retries = *s.Retries
			}
			spec.Subs = append(spec.Subs, sub)
		}
	}
	if err := spec.Check(); err != nil {
		return corral.ErrorAt(corral.Invalid, "workflow "+flow.Name, "%w", err)
	}
	return nil
}

// needsSubs reports whether decisions depend on the subworkflows.
func needsSubs(flow *workflow.Workflow) bool {
	said := func(c *workflow.Control) bool { return c != nil && (c.Final || c.Abort != nil) }
	for _, s := range flow.Subworkflows {
		if s.Control != nil && *s.Control != (workflow.Control{}) || s.Retries != nil && *s.Retries > 0 {
			return true
		}
		for i := s.First; i < s.End; i++ {
			if said(flow.Tasks[i].Control) {
				return true
			}
		}
	}
	return false
}

// A ruleMaker turns controls into rules.
type ruleMaker struct {
	categories map[string]int   // :: name → its number in rules
	priority   int              // priority of the run
	silent     *execution.Rules // rules of a task without controls
}

func (m ruleMaker) rules(c *workflow.Control) *execution.Rules {
	if c == nil {
		return m.silent
	}
	r := m.ofSub(c)
	r.Priority = sum(r.Priority, m.priority)
	if c.UnlessExit == 0 && m.silent != nil {
		r.UnlessExit = m.silent.UnlessExit
	}
	return r
}

// sum adds the priority of a run to that of a task.
func sum(task, run int) int { return max(-api.MaxPriority, min(api.MaxPriority, task+run)) }

// ofSub returns the rules of a subworkflow, to which the run's options do not apply.
func (m ruleMaker) ofSub(c *workflow.Control) *execution.Rules {
	if c == nil {
		return nil
	}
	r := &execution.Rules{Priority: c.Priority, Category: m.categories[c.Category], Done: c.Done, Final: c.Final,
		PreSkip: c.PreSkip, Abort: (*execution.Abort)(c.Abort)}
	script := func(s *workflow.Script) *execution.Script {
		if s == nil {
			return nil
		}
		return &execution.Script{DeferStatus: s.DeferStatus, DeferAfter: s.DeferAfter}
	}
	r.Pre, r.Post = script(c.Pre), script(c.Post)
	if c.UnlessExit != 0 {
		r.UnlessExit = []int{c.UnlessExit}
	}
	return r
}

// localName returns the name of a unit within its sub-DAG.
func (p *plan) localName(unit int32, name string) string {
	first, end := int(unit), int(unit)+1
	if k := int(unit) - len(p.flow.Tasks); k >= 0 {
		first, end = p.flow.Subworkflows[k].First, p.flow.Subworkflows[k].End
	}
	local := name
	for k, s := range p.flow.Subworkflows { // the innermost comes last
		if !s.Job && s.First <= first && end <= s.End && k != int(unit)-len(p.flow.Tasks) {
			if rest, ok := strings.CutPrefix(name, s.Name+"+"); ok {
				local = rest
			}
		}
	}
	return local
}

// control returns the name and the control of a unit: a task or, after all tasks, a subworkflow.
func (p *plan) control(unit int32) (name string, c *workflow.Control) {
	if n := len(p.flow.Tasks); int(unit) >= n {
		s := &p.flow.Subworkflows[int(unit)-n]
		return s.Name, s.Control
	}
	t := &p.flow.Tasks[unit]
	return t.ID, t.Control
}
