package plot

import (
	"image/color"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// A Chart plots series of numbers over a common axis.
type Chart struct {
	Title, Subtitle string
	X, Y            string // the names of the axes, with units
	Series          []Series
}

// A Series is a sequence of points, in the order of the line that joins them.
type Series struct {
	Name string
	At   []XY
	Line bool // the points are joined by a line
	Dots bool // each point is drawn as a dot
}

// XY is one point.
type XY struct{ X, Y float64 }

// palette contains the colours of series in order; if there are more series, the colours repeat.
var palette = []color.Color{blue, orange, black, color.RGBA{G: 0x9e, B: 0x73, A: 0xff}, dark,
	color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff}}

// panel draws the chart.
func (c Chart) panel() panel {
	p := newPlot(c.X, c.Y)
	a := panel{title: c.Title, subtitle: c.Subtitle, plot: p}
	for i, s := range c.Series {
		if len(s.At) == 0 {
			continue
		}
		points := make(plotter.XYs, len(s.At))
		for k, at := range s.At {
			points[k] = plotter.XY(at)
		}
		k := key{text: s.Name}
		if s.Line {
			k.line = line(palette[i%len(palette)], 1.25)
			p.Add(&plotter.Line{XYs: points, LineStyle: k.line})
		}
		if s.Dots {
			k.dot = draw.GlyphStyle{Color: palette[i%len(palette)], Radius: 2.5, Shape: draw.CircleGlyph{}}
			p.Add(&plotter.Scatter{XYs: points, GlyphStyle: k.dot})
		}
		a.keys = append(a.keys, k)
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{}, ticks{}
	if p.Y.Min > 0 && p.Y.Min < p.Y.Max/2 {
		p.Y.Min = 0
	}
	return a
}
