package plot

import (
	"cmp"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/corral-pilot/corral"
)

// A Gantt shows where and when tasks ran. The number of a worker's lanes is the maximum number of tasks that it ran at
// once.
type Gantt struct {
	Title, Subtitle string
	Since           string   // the event to which times are relative; empty: the run's start
	Kinds           []string // kinds of tasks, by total time, the largest first
	Lanes           []Lane
	End             corral.Seconds
}

// A Lane contains tasks that ran one after the other on a worker, by time. Bars do not overlap.
type Lane struct {
	Name string // the name of the worker
	Bars []Bar
}

// A Bar is one task.
type Bar struct {
	From, To corral.Seconds
	Kind     int // index in Gantt.Kinds
}

const (
	mostLanes = 48  // lanes of a picture; with more, a lane would be lower than a line of text
	mostBars  = 400 // bars of a lane; more bars are merged into equal parts of the time, see thin
)

// kindColours lists the colours of the first kinds of tasks, as distinct as the colours of Okabe and Ito; further kinds
// share the last colour.
var kindColours = []color.Color{
	blue, orange, color.RGBA{G: 0x9e, B: 0x73, A: 0xff}, color.RGBA{R: 0xe6, G: 0x9f, A: 0xff},
	color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff}, dark,
}

func kindColour(kind int) color.Color { return kindColours[min(kind, len(kindColours)-1)] }

// Shown returns the number of lanes for which the picture has room, counted from the first.
func (g Gantt) Shown() int { return min(len(g.Lanes), mostLanes) }

// panel draws the lanes, the first at the top.
func (g Gantt) panel() panel {
	unit := times(g.End)
	p := newPlot("time since "+cmp.Or(g.Since, "the run's beginning")+" ("+unit.name+")", "")
	a := panel{title: short(g.Title), subtitle: g.Subtitle, plot: p}
	for k, name := range g.Kinds {
		if k == len(kindColours)-1 && len(g.Kinds) > len(kindColours) {
			name = "others"
		}
		if k < len(kindColours) {
			a.keys = append(a.keys, key{text: short(name), area: kindColour(k)})
		}
	}
	lanes := g.Lanes[:g.Shown()]
	p.Add(bars{lanes, g.End, unit})
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, max(unit.of(g.End)*1.02, 1e-3), 0, float64(max(1, len(lanes)))
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{}, laneNames(lanes)
	return a
}

// bars draws the bars of lanes.
type bars struct {
	lanes []Lane
	end   corral.Seconds
	unit  scale
}

// Plot implements plot.Plotter.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, l := range b.lanes {
		top, bottom := y(float64(len(b.lanes)-i)-0.1), y(float64(len(b.lanes)-i)-0.9)
		for _, bar := range l.thin(mostBars, b.end) {
			from, to := x(b.unit.of(bar.From)), x(b.unit.of(bar.To))
			to = max(to, from+0.25) // a bar that is too short to be visible becomes a line
			c.FillPolygon(kindColour(bar.Kind), []vg.Point{{X: from, Y: bottom}, {X: to, Y: bottom}, {X: to, Y: top},
				{X: from, Y: top}})
		}
	}
}

// thin returns the bars unchanged if there are at most n. Otherwise it divides the time until end into n equal parts.
// Each part has the kind of task that took up most of its time, or no kind if the lane was idle for more than half of
// it; equal neighbours become one bar.
func (l Lane) thin(n int, end corral.Seconds) []Bar {
	if len(l.Bars) <= n || end <= 0 {
		return l.Bars
	}
	width := float64(end) / float64(n)
	busy := make([]map[int]float64, n) // :: part → kind → share of the part
	for _, b := range l.Bars {
		from, to := float64(b.From)/width, float64(b.To)/width
		for k := max(0, int(from)); k < n && float64(k) < to; k++ {
			if busy[k] == nil {
				busy[k] = make(map[int]float64)
			}
			busy[k][b.Kind] += math.Min(to, float64(k+1)) - math.Max(from, float64(k))
		}
	}
	var all []Bar
	for k, shares := range busy {
		kind, sum := -1, 0.
		for of, share := range shares {
			sum += share
			if kind < 0 || share > shares[kind] || share == shares[kind] && of < kind {
				kind = of
			}
		}
		if sum < 0.5 {
			continue
		}
		from, to := corral.Seconds(float64(k)*width), corral.Seconds(float64(k+1)*width)
		if last := len(all) - 1; last >= 0 && all[last].To == from && all[last].Kind == kind {
			all[last].To = to
		} else {
			all = append(all, Bar{from, to, kind})
		}
	}
	return all
}

// laneNames labels the lanes at the axis with the names of their workers: each worker once, and only as many as fit.
type laneNames []Lane

// mostNames is the maximum number of names that fit beside the lanes.
const mostNames = 24

// Ticks implements plot.Ticker.
func (l laneNames) Ticks(_, _ float64) (all []plot.Tick) {
	every := (len(l) + mostNames - 1) / mostNames
	last, skipped := "", every
	for i, lane := range l {
		skipped++
		if lane.Name == last || skipped < every {
			continue
		}
		last, skipped = lane.Name, 0
		all = append(all, plot.Tick{Value: float64(len(l)-i) - 0.5, Label: lane.Name})
	}
	return all
}

// ReadyTasks shows, over time, the number of tasks that were ready but had no cpu.
type ReadyTasks struct {
	Title string
	Ready Levels // numbers of tasks instead of cpus
	End   corral.Seconds
}

// panel draws the queue.
func (q ReadyTasks) panel() panel {
	unit := times(q.End)
	p := newPlot("time since the run's beginning ("+unit.name+")", "tasks")
	a := panel{title: q.Title, plot: p}
	a.steps(unit, "ready, but not running", q.Ready, nil, line(orange, 1.5))
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, max(unit.of(q.End)*1.02, 1e-3), 0, max(1, q.Ready.Peak())*1.08
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{}, ticks{least: 1}
	return a
}
