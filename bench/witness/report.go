package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
)

// summarize prints the counts and the distributions. It fails if a plan leaves a task undone, breaks its budget or
// misses its deadline, or if a goal is refused that can be reached.
func (b bench) summarize(all []result) error {
	if len(all) == 0 {
		return nil
	}
	count := func(is func(result) bool) (n int) {
		for _, r := range all {
			if is(r) {
				n++
			}
		}
		return n
	}
	refused := count(func(r result) bool { return r.refused })
	solvable := count(func(r result) bool { return r.solvable != "" })
	stranded := count(func(r result) bool { return r.stranded })
	late, over := count(func(r result) bool { return r.late }), count(func(r result) bool { return r.overBudget })
	crowded := count(func(r result) bool { return r.crowded })
	fmt.Fprintf(b.stdout, "%d plans, executed: %d leave a task undone, %d miss their deadline, %d break their budget\n",
		len(all)-refused, stranded, late, over)
	if b.source.nodes {
		fmt.Fprintf(b.stdout, "%d have hosts that do not fit on the nodes\n", crowded)
	}
	fmt.Fprintf(b.stdout, "%d goals without a plan, of which %d can be reached\n", refused, solvable)
	for _, q := range []struct {
		what string
		of   func(result) float64
	}{
		{"makespan, executed ÷ planned", func(r result) float64 { return r.makespan }},
		{"cost, executed ÷ planned", func(r result) float64 { return r.cost }},
		{"cost ÷ best list schedule", func(r result) float64 { return r.beside }},
		{"time for planning, s", func(r result) float64 { return r.took.Seconds() }},
	} {
		var values []float64
		for _, r := range all {
			if x := q.of(r); !r.stranded && !r.refused && x > 0 {
				values = append(values, x)
			}
		}
		if slices.Sort(values); len(values) == 0 {
			continue
		}
		at := func(share float64) float64 { return values[int(share*float64(len(values)-1))] }
		fmt.Fprintf(b.stdout, "%-30s p5 %.3f, median %.3f, p90 %.3f, p95 %.3f, most %.3f (of %d)\n", q.what, at(0.05),
			at(0.5), at(0.9), at(0.95), at(1), len(values))
	}
	if bad := solvable + stranded + late + over + crowded; bad > 0 {
		return corral.Errorf(corral.Failed, "%d of %d goals are not as promised", bad, len(all))
	}
	return nil
}

// write writes the result of each plan as CSV.
func (b bench) write(all []result) error {
	if b.out == "" || len(all) == 0 {
		return nil
	}
	var text bytes.Buffer
	lines := csv.NewWriter(&text)
	_ = lines.Write([]string{"problem", "kind", "objective", "deadline_s", "budget", "bounds_of", "tasks", "pilots",
		"refused", "reached_by", "undone", "late", "over_budget", "makespan_ratio", "cost_ratio",
		"list_schedule_ratio"})
	ratio := func(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }
	for _, r := range all {
		budget := ""
		if r.goal.Budget != nil {
			budget = r.goal.Budget.String()
		}
		_ = lines.Write([]string{strconv.Itoa(r.seed), r.kind, string(r.goal.Objective),
			strconv.FormatFloat(time.Duration(r.goal.Deadline).Seconds(), 'f', -1, 64), budget, r.from,
			strconv.Itoa(r.tasks), strconv.Itoa(r.pilots), strconv.FormatBool(r.refused), r.solvable,
			strconv.FormatBool(r.stranded), strconv.FormatBool(r.late), strconv.FormatBool(r.overBudget),
			ratio(r.makespan), ratio(r.cost), ratio(r.beside)})
	}
	if lines.Flush(); lines.Error() != nil {
		return lines.Error() // unreachable: the text is in memory
	}
	return os.WriteFile(b.out, text.Bytes(), 0o644)
}
