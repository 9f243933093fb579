package main

import (
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/internal/cli/plot"
)

// draw writes a plot if a directory for plots is set.
func draw(d *desk, name string, chart plot.Chart) error {
	if d.out == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(d.out, name+".svg"))
	if err != nil {
		return err
	}
	if err := plot.Write(f, plot.SVG, chart); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
