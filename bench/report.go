package main

// Reports are Markdown, for docs/bench, and their tables are aligned for reading in a terminal.

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/corral-pilot/corral/internal/service/personal"
)

// results contains all measurements of tasks.
type results struct {
	throughput throughput
	latency    latency
	queued     queued
}

// measureTasks makes all measurements of tasks and publishes the results.
func (p plan) measureTasks(ctx context.Context, dir string) error {
	if err := personal.UsePrograms(p.bin); err != nil {
		return err
	}
	m := thisMachine(dir)
	var r results
	if err := r.measureRuns(ctx, p, dir); err != nil {
		return err
	}
	var err error
	if r.queued, err = measureQueued(ctx, filepath.Join(dir, "q"), p.queued); err != nil {
		return err
	}
	return p.publish(m, "\n\n"+r.markdown())
}

// measureRuns makes the measurements that need pilots.
func (r *results) measureRuns(ctx context.Context, p plan, dir string) error {
	return p.onStand(ctx, dir, func(g contest) (err error) {
		if r.throughput, err = g.throughput(ctx); err == nil {
			r.latency, err = g.latency(ctx)
		}
		return err
	})
}

// markdown returns the report. Its tables are also readable as plain text.
func (r results) markdown() string {
	var b strings.Builder
	t := r.throughput
	n := len(t.limit)
	fmt.Fprintf(&b, "%d independent no-op tasks (/bin/true), %d wide, %d rounds:\n\n", t.tasks, width, n)
	table(&b, [][]string{
		{"tasks/s", "median", "range"},
		append([]string{"bare loop"}, rates(t.limit).row("%.0f")...),
		append([]string{"corral"}, rates(t.corral).row("%.0f")...),
		append([]string{"corral, --keep-tasks"}, rates(t.kept).row("%.0f")...),
		append([]string{"corral, " + t.clustering}, rates(t.clustered).row("%.0f")...),
		append([]string{"**corral ÷ bare loop**"}, ratios(t.corral, t.limit).row("%.2f")...),
		append([]string{"--keep-tasks ÷ bare loop"}, ratios(t.kept, t.limit).row("%.2f")...),
		append([]string{t.clustering + " ÷ bare loop"}, ratios(t.clustered, t.limit).row("%.2f")...),
		append([]string{"bare loop ÷ corral, processor time"}, thrifts(t.corral, t.limit).row("%.2f")...),
		append([]string{"the same with --keep-tasks"}, thrifts(t.kept, t.limit).row("%.2f")...),
	})
	b.WriteString("\nProcessor time, µs a task, medians:\n\n")
	table(&b, t.costTable())
	fmt.Fprintf(&b, "\nA chain of %d no-op tasks, each waiting for the one before it:\n\n", r.latency.corral[0].tasks)
	table(&b, [][]string{
		{"ms a hop", "median", "range"},
		append([]string{"one bare loop"}, perTask(r.latency.limit).row("%.2f")...),
		append([]string{"corral"}, perTask(r.latency.corral).row("%.2f")...),
	})
	b.WriteString("\n" + r.queued.markdown())
	return b.String()
}

// costTable returns the processor time by part. Unlike rates, it hardly depends on other load on the machine.
func (t throughput) costTable() [][]string {
	rows := [][]string{{"part", "bare loop", "corral", "--keep-tasks", t.clustering}}
	row := func(name string, of func(cost) time.Duration) {
		cells := []string{name}
		for _, samples := range [][]sample{t.limit, t.corral, t.kept, t.clustered} {
			cells = append(cells, fmt.Sprintf("%.0f", costs(samples, of).median()))
		}
		rows = append(rows, cells)
	}
	for p, name := range partNames {
		row(name, func(c cost) time.Duration { return c[p] })
	}
	row("all", cost.sum)
	return rows
}

// markdown returns the report about queued tasks.
func (q queued) markdown() string {
	const mib = 1 << 10 // KiB
	var b strings.Builder
	fmt.Fprintf(&b, "%d tasks queued in corrald, no worker (workflow of %.1f MB):\n\n", q.tasks,
		float64(q.document)/1e6)
	table(&b, [][]string{
		{"what", "measured"},
		{"request to answer", q.answered.Round(time.Millisecond).String()},
		{"request to all queued", q.quiet.Round(10 * time.Millisecond).String()},
		{"resident memory before", fmt.Sprintf("%d MiB", q.empty.now/mib)},
		{"resident memory then", fmt.Sprintf("%d MiB", q.full.now/mib)},
		{"its peak", fmt.Sprintf("%d MiB", q.full.peak/mib)},
		{"growth per task", fmt.Sprintf("%d bytes", q.bytesPerTask())},
	})
	return b.String()
}

// table writes rows of equal length, the first of which is the header.
func table(b *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for k, row := range rows {
		for i, cell := range row {
			b.WriteString("| " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+1))
		}
		b.WriteString("|\n")
		if k == 0 {
			for _, w := range widths {
				b.WriteString("| " + strings.Repeat("-", w) + " ")
			}
			b.WriteString("|\n")
		}
	}
}
