package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// A Format is the encoding of a picture.
type Format string

// The formats.
const (
	PNG Format = "png"
	SVG Format = "svg"
)

// FormatOf returns the format that a file's extension denotes, or an Invalid error for any other extension.
func FormatOf(file string) (Format, error) {
	f := Format(strings.ToLower(strings.TrimPrefix(filepath.Ext(file), ".")))
	if !slices.Contains([]Format{PNG, SVG}, f) {
		return "", corral.Errorf(corral.Invalid, "%q ends in neither .png nor .svg", file)
	}
	return f, nil
}

// A Figure is an object that can be drawn, such as a Staircase, a Front or a Chart.
type Figure interface{ panel() panel }

// The size of a figure, in points of 1/72 inch, and the resolution of PNG: 1350 × 675 dots.
const (
	width, height = 648, 324
	margin        = 12
	dotsPerInch   = 150
)

// Write writes figures, one above the other, as one picture.
func Write(w io.Writer, f Format, figures ...Figure) error {
	full := vg.Length(height * len(figures))
	var canvas vg.CanvasSizer
	var to io.WriterTo
	var drawn bytes.Buffer
	switch f {
	case SVG:
		c := vgsvg.New(width, full)
		canvas, to = c, c
	default:
		c := vgimg.NewWith(vgimg.UseWH(width, full), vgimg.UseDPI(dotsPerInch), vgimg.UseBackgroundColor(color.White))
		canvas, to = c, vgimg.PngCanvas{Canvas: c}
	}
	all := draw.New(canvas)
	if f == SVG { // the background of SVG is transparent
		all.FillPolygon(color.White, []vg.Point{{}, {X: width}, {X: width, Y: full}, {Y: full}})
	}
	for i, figure := range figures {
		bottom := vg.Length(height * (len(figures) - 1 - i))
		figure.panel().draw(draw.Crop(all, margin, -margin, bottom+margin, bottom+height-margin-full))
	}
	if _, err := to.WriteTo(&drawn); err != nil {
		return fmt.Errorf("drawing: %w", err)
	}
	_, err := w.Write(withFonts(f, drawn.Bytes()))
	return wrap.Errorf(err, "writing a picture")
}

// withFonts replaces the fonts in SVG, because the font with which texts were measured is not available everywhere; the
// replacements have the same widths.
func withFonts(f Format, drawn []byte) []byte {
	if f != SVG {
		return drawn
	}
	return bytes.ReplaceAll(drawn, []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans, Arial, Helvetica, sans-serif;"))
}
