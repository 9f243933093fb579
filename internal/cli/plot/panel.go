package plot

import (
	"cmp"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/corral-pilot/corral"
)

// The colours are distinguishable for colour-blind people, according to Okabe and Ito, "Color Universal Design" (2008).
var (
	paleBlue = color.RGBA{R: 0xbf, G: 0xdb, B: 0xee, A: 0xff}
	blue     = color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}
	orange   = color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}
	black    = color.RGBA{A: 0xff}
	grey     = color.RGBA{R: 0xe4, G: 0xe4, B: 0xe4, A: 0xff}
	dark     = color.RGBA{R: 0x66, G: 0x66, B: 0x66, A: 0xff}
)

// A panel is a diagram with the text above it. The key is a row above the diagram, so that it does not cover any part
// of the diagram.
type panel struct {
	title, subtitle string
	keys            []key
	plot            *plot.Plot
}

// A key explains a line, an area or a point: the first of these fields that is not zero.
type key struct {
	text string
	area color.Color
	line draw.LineStyle
	dot  draw.GlyphStyle
}

func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Tick.Label.Font = sans(10), sans(9)
		a.Padding = 0
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = grey, grey
	p.Add(grid)
	return p
}

func sans(points vg.Length) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, points)
}

func line(c color.Color, width vg.Length, dashes ...vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: width, Dashes: dashes}
}

// maxLevels is the maximum number of steps in a picture; more steps would be narrower than the picture's dots.
const maxLevels = 1500

// panel draws the staircase.
func (s Staircase) panel() panel {
	unit, peak := times(s.End()), max(s.Held.Peak(), s.Busy.Peak(), 1)
	p := newPlot("time since "+cmp.Or(s.Since, "the plan's beginning")+" ("+unit.name+")", "cpus")
	a := panel{title: s.Title, subtitle: s.Subtitle, plot: p}
	steps := func(name string, l Levels, area color.Color, style draw.LineStyle) {
		a.steps(unit, name, l, area, style)
	}
	if s.Actual == nil {
		steps("held by pilots", s.Held, paleBlue, draw.LineStyle{})
		steps("used by tasks", s.Busy, nil, line(blue, 1.5))
	} else {
		peak = max(peak, s.Actual.Held.Peak(), s.Actual.Busy.Peak())
		steps("planned: held", s.Held, paleBlue, draw.LineStyle{})
		steps("planned: used", s.Busy, nil, line(blue, 1))
		steps("actual: held", s.Actual.Held, nil, line(black, 1.5))
		steps("actual: used", s.Actual.Busy, nil, line(orange, 1.5))
		for _, m := range s.Actual.Marks {
			p.Add(upright{unit.of(m.At), m.Text, line(dark, 0.75, 1, 2)})
		}
		if len(s.Actual.Marks) > 0 {
			a.keys = append(a.keys, key{text: "revision", line: line(dark, 0.75, 1, 2)})
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, max(unit.of(s.End())*1.02, 1e-3), 0, peak*1.08
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{}, ticks{least: 1}
	s.deadline(&a, unit)
	return a
}

// steps draws levels as a line with the area below it, and adds them to the key.
func (a *panel) steps(unit scale, name string, l Levels, area color.Color, style draw.LineStyle) {
	if len(l) == 0 {
		return
	}
	var points plotter.XYs
	points = append(points, plotter.XY{X: unit.of(l[0].From)})
	for _, at := range l.Thin(maxLevels) {
		points = append(points, plotter.XY{X: unit.of(at.From), Y: at.CPUs})
	}
	a.plot.Add(&plotter.Line{XYs: points, StepStyle: plotter.PostStep, FillColor: area, LineStyle: style})
	a.keys = append(a.keys, key{text: name, area: area, line: style})
}

// deadline marks the deadline, or adds a note that the deadline is beyond the picture.
func (s Staircase) deadline(a *panel, unit scale) {
	switch {
	case s.Deadline == 0:
	case s.Deadline > s.End():
		a.subtitle += fmt.Sprintf(", deadline %s (beyond the right edge)", Brief(s.Deadline))
	default:
		style := line(black, 1, 5, 3)
		a.plot.Add(upright{unit.of(s.Deadline), "", style})
		a.keys = append(a.keys, key{text: "deadline " + Brief(s.Deadline), line: style})
	}
}

// panel draws the front.
func (f Front) panel() panel {
	all := f.Points
	var most float64
	var last corral.Seconds
	for _, o := range append(all[:len(all):len(all)], f.Chosen) {
		most, last = max(most, o.CoreHours), max(last, o.Makespan)
	}
	x, y := times(last), coreTimes(most)
	p := newPlot("makespan ("+x.name+")", y.name)
	var points plotter.XYs
	for _, o := range all {
		points = append(points, plotter.XY{X: x.of(o.Makespan), Y: o.CoreHours / y.one})
	}
	others := draw.GlyphStyle{Color: blue, Radius: 3, Shape: draw.CircleGlyph{}}
	chosen := draw.GlyphStyle{Color: orange, Radius: 6, Shape: draw.BoxGlyph{}}
	here := plotter.XYs{{X: x.of(f.Chosen.Makespan), Y: f.Chosen.CoreHours / y.one}}
	p.Add(&plotter.Line{XYs: points, StepStyle: plotter.PostStep, LineStyle: line(blue, 0.75)},
		&plotter.Scatter{XYs: here, GlyphStyle: chosen}, &plotter.Scatter{XYs: points, GlyphStyle: others})
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		room := max(0.06*(a.Max-a.Min), 0.01*a.Max, 1e-6)
		a.Min, a.Max, a.Tick.Marker = max(0, a.Min-room), a.Max+room, ticks{}
	}
	return panel{title: "Plans that were considered", plot: p, keys: []key{
		{text: "no other plan is both sooner and cheaper", dot: others},
		{text: fmt.Sprintf("this plan: %s, %s", Brief(f.Chosen.Makespan), f.Chosen.Cost.Brief()), dot: chosen},
	}}
}

// An upright is a vertical line over the whole height of a diagram, with a word beside its upper end.
type upright struct {
	x     float64
	text  string
	style draw.LineStyle
}

// Plot implements plot.Plotter.
func (u upright) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	at := x(u.x)
	if !c.ContainsX(at) {
		return
	}
	c.StrokeLine2(u.style, at, c.Min.Y, at, c.Max.Y)
	if u.text != "" {
		c.FillText(style(8, dark), vg.Point{X: at + 2, Y: c.Max.Y - 9}, u.text)
	}
}

func style(points vg.Length, c color.Color) text.Style {
	return text.Style{Color: c, Font: sans(points), Handler: plot.DefaultTextHandler}
}

// draw writes the texts from the top down, and fills the remaining space with the diagram.
func (a panel) draw(c draw.Canvas) {
	y := c.Max.Y
	write := func(s text.Style, height vg.Length, words string) {
		if words != "" {
			y -= height
			c.FillText(s, vg.Point{X: c.Min.X, Y: y + 4}, words)
		}
	}
	write(style(13, black), 18, a.title)
	write(style(10, dark), 15, a.subtitle)
	y -= 16
	x := c.Min.X
	for _, k := range a.keys {
		s := style(9, black)
		width := 24 + s.Width(k.text)
		if x > c.Min.X && x+width > c.Max.X {
			x, y = c.Min.X, y-14
		}
		k.draw(c, vg.Point{X: x, Y: y + 4})
		c.FillText(s, vg.Point{X: x + 24, Y: y + 4}, k.text)
		x += width + 14
	}
	a.plot.Draw(draw.Crop(c, 0, 0, 0, y-4-c.Max.Y))
}

func (k key) draw(c draw.Canvas, at vg.Point) {
	middle := at.Y + 3
	switch {
	case k.area != nil:
		c.FillPolygon(k.area, []vg.Point{at, {X: at.X + 18, Y: at.Y}, {X: at.X + 18, Y: at.Y + 8},
			{X: at.X, Y: at.Y + 8}})
	case k.dot.Shape != nil:
		c.DrawGlyph(k.dot, vg.Point{X: at.X + 9, Y: middle})
	default:
		c.StrokeLine2(k.line, at.X, middle, at.X+18, middle)
	}
}
