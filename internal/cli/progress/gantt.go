package progress

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral/api"
)

// levels are the characters that represent the share of time for which a worker was busy, from none to all.
var levels = []rune(" ▁▂▃▄▅▆▇█")

// A Chart shows the activity of a run's workers on one scale: a row for each worker, and in it a character for each
// interval of time. The character's height shows how busy the worker was, and its colour shows the worker's main kind
// of task.
type Chart struct {
	Tasks    []api.TaskStatus
	From, To time.Time // the two ends of the scale
	Now      time.Time // the time until which running tasks are drawn
}

// An interval is a period in which a worker ran a task.
type interval struct {
	kind, worker string
	from, to     time.Time
}

// labelWidth is the width of a label such as "worker 12", in characters.
const labelWidth = 10

// Draw returns the chart's rows, its scale, and the legend, each line after indent spaces.
func (c Chart) Draw(look Look, indent int) []string {
	cells := min(look.Columns(), plainWidth) - indent - labelWidth - 1
	if cells < leastBar || !c.To.After(c.From) {
		return nil
	}
	busy := c.intervals()
	kinds, workers := namesOf(busy)
	var out []string
	for i, w := range workers {
		label := Span{Faint, fmt.Sprintf("%*s%-*s", indent, "", labelWidth, fmt.Sprintf("worker %d", i))}
		out = append(out, look.Line(append([]Span{label}, c.row(w, busy, kinds, cells)...)...))
	}
	end := c.To.Sub(c.From).Round(100 * time.Millisecond).String()
	out = append(out, look.Line(Span{Faint, fmt.Sprintf("%*s0s%*s", indent+labelWidth, "", cells-2, end)}))
	if look.Colour {
		out = append(out, look.Line(legend(indent+labelWidth, busy, kinds)...))
	}
	return out
}

// intervals returns the periods in which workers were busy, the earliest first.
func (c Chart) intervals() (busy []interval) {
	for _, t := range c.Tasks {
		if t.Worker == "" || t.StartedAt.IsZero() {
			continue
		}
		iv := interval{kindOf(t.ID), t.Worker, t.StartedAt, t.EndedAt}
		if t.EndedAt.Before(t.StartedAt) {
			iv.to = c.Now
		}
		busy = append(busy, iv)
	}
	slices.SortStableFunc(busy, func(a, b interval) int { return a.from.Compare(b.from) })
	return busy
}

// namesOf returns the kinds of tasks and the workers. The kinds are in the order in which they first ran, so that a
// kind keeps its colour while a run is in progress; the workers are sorted by name.
func namesOf(busy []interval) (kinds, workers []string) {
	for _, iv := range busy {
		if !slices.Contains(kinds, iv.kind) {
			kinds = append(kinds, iv.kind)
		}
		if !slices.Contains(workers, iv.worker) {
			workers = append(workers, iv.worker)
		}
	}
	slices.Sort(workers)
	return kinds, workers
}

// row draws one worker's activity with the number of characters given by cells.
func (c Chart) row(worker string, busy []interval, kinds []string, cells int) []Span {
	share := make([]map[string]float64, cells) // share of each character's time, by kind
	for i := range share {
		share[i] = map[string]float64{}
	}
	width := float64(c.To.Sub(c.From)) / float64(cells)
	for _, iv := range busy {
		if iv.worker != worker {
			continue
		}
		from, to := float64(iv.from.Sub(c.From))/width, float64(iv.to.Sub(c.From))/width
		for i := max(int(from), 0); i < cells && float64(i) < to; i++ {
			share[i][iv.kind] += math.Min(to, float64(i+1)) - math.Max(from, float64(i))
		}
	}
	row := make([]Span, cells)
	for i := range row {
		row[i] = cell(share[i], kinds)
	}
	return row
}

// cell draws one character.
func cell(share map[string]float64, kinds []string) Span {
	sum, most := 0., kinds[0]
	for _, kind := range kinds {
		sum += share[kind]
		if share[kind] > share[most] {
			most = kind
		}
	}
	full := len(levels) - 1
	level := int(math.Ceil(sum*float64(full) - 0.01)) // a small amount of work is visible, but a rounding error is not
	return Span{ink(kinds, most), string(levels[min(max(level, 0), full)])}
}

// mostKinds is the maximum number of kinds in a legend.
const mostKinds = 4

// legend explains the colours of the kinds of tasks that took the most time.
func legend(margin int, busy []interval, kinds []string) []Span {
	spent := map[string]time.Duration{}
	for _, iv := range busy {
		spent[iv.kind] += iv.to.Sub(iv.from)
	}
	byTime := slices.Clone(kinds)
	slices.SortStableFunc(byTime, func(a, b string) int { return cmp.Compare(spent[b], spent[a]) })
	spans := []Span{{Plain, strings.Repeat(" ", margin)}}
	for _, kind := range byTime[:min(mostKinds, len(byTime))] {
		spans = append(spans, Span{ink(kinds, kind), "█ "}, Span{Faint, kind + "  "})
	}
	if rest := len(byTime) - mostKinds; rest > 0 {
		spans = append(spans, Span{Faint, fmt.Sprintf("and %d more", rest)})
	}
	return spans
}

func ink(kinds []string, kind string) Colour {
	return inks[max(slices.Index(kinds, kind), 0)%len(inks)]
}

// kindOf derives the kind of a task from its id: count from count.07.
func kindOf(id string) string {
	stem, _, _ := strings.Cut(id, ".")
	if trimmed := strings.TrimRight(stem, "0123456789_-"); trimmed != "" {
		return trimmed
	}
	return id
}
