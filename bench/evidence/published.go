package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats"
)

// A published workflow was executed by its authors, who measured its tasks.
type published struct {
	file string // within the directory: APPLICATION/NAME
	flow *workflow.Workflow
}

// application returns the folders that contain its file.
func (p published) application() string { return path.Dir(p.file) }

// name returns the name of its file, without the common suffix.
func (p published) name() string { return strings.TrimSuffix(path.Base(p.file), ".json.gz") }

// work returns its input for a plan.
func (p published) work() plan.Work {
	w := plan.Work{Name: p.name(), Graph: p.flow.Graph}
	for _, t := range p.flow.Tasks {
		w.Tasks = append(w.Tasks, plan.Task{ID: t.ID, Kind: t.Name, Needs: corral.Resources{CPUs: max(1, t.CPUs)},
			Runtime: t.Estimate.Round(time.Millisecond)})
	}
	return w
}

// readPublished reads the workflows in a directory's index, in ascending order of the number of tasks.
func readPublished(ctx context.Context, dir string) (all []published, err error) {
	f, err := os.Open(filepath.Join(dir, "INDEX.csv"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	for _, row := range rows[min(1, len(rows)):] {
		flow, _, err := formats.ReadFile(ctx, filepath.Join(dir, row[0]), workflow.Options{})
		if err != nil {
			return nil, err
		}
		all = append(all, published{row[0], flow})
	}
	slices.SortStableFunc(all, func(a, b published) int { return cmp.Compare(len(a.flow.Tasks), len(b.flow.Tasks)) })
	return all, nil
}

// byApplication returns the runs of each application that has fewestRuns or more, with measured runtimes.
func byApplication(ctx context.Context, dir string) (apps [][]published, err error) {
	all, err := readPublished(ctx, dir)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b published) int { return cmp.Compare(a.application(), b.application()) })
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].application() == all[0].application() {
			n++
		}
		measured := slices.ContainsFunc(all[0].flow.Tasks, func(t workflow.Task) bool { return t.Runtime > 0 })
		if n >= fewestRuns && measured {
			apps = append(apps, all[:n])
		}
		all = all[n:]
	}
	return apps, nil
}

// An interval is the mean of a sample, its standard deviation, and half the width of the mean's 95 % interval.
type interval struct{ mean, sd, half float64 }

// String formats the interval for tables.
func (x interval) String() string { return fmt.Sprintf("%.2f ± %.2f (%.2f)", x.mean, x.half, x.sd) }

// intervalOf computes it with Student's distribution, whose quantile is approximated to three digits for samples of at
// least 10.
func intervalOf(sample []float64) interval {
	n := float64(len(sample))
	if n < 2 {
		return interval{mean: sum(sample) / max(1, n), half: math.Inf(1)}
	}
	mean, squares := sum(sample)/n, 0.0
	for _, x := range sample {
		squares += (x - mean) * (x - mean)
	}
	const z = 1.959964
	freedom := n - 1
	t := z + (z*z*z+z)/(4*freedom) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*freedom*freedom)
	sd := math.Sqrt(squares / freedom)
	return interval{mean, sd, t * sd / math.Sqrt(n)}
}

func sum(sample []float64) (s float64) {
	for _, x := range sample {
		s += x
	}
	return s
}
