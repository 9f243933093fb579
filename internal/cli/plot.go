package cli

// Plans are drawn by the client, not by corrald, because the document contains all the data.

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/internal/cli/report"
)

// planPlot is the help of --plot for a plan.
const planPlot = "plot the cpus that it holds over time, and the considered plans, or an ensemble's grid, into " +
	"`FILE`.png or .svg"

// plotFlag returns the flag for the file of a picture. The flag checks the extension before anything is requested.
func plotFlag(usage string) cli.Flag {
	return &cli.StringFlag{
		Name:  "plot",
		Usage: usage,
		Action: func(_ *cli.Context, file string) error {
			if _, err := formatOf(file); err != nil {
				return err
			}
			return checkWritable("--plot", file)
		},
	}
}

// checkWritable refuses a file that cannot be written in its folder, before the content of the file is computed.
func checkWritable(flag, file string) error {
	if dir, err := os.Stat(filepath.Dir(file)); err != nil || !dir.IsDir() {
		return corral.ErrorAt(corral.Invalid, flag, "there is no folder %s", filepath.Dir(file))
	}
	if there, err := os.Stat(file); err == nil && there.IsDir() {
		return corral.ErrorAt(corral.Invalid, flag, "%s is a folder", file)
	}
	return nil
}

func formatOf(file string) (plot.Format, error) {
	f, err := plot.FormatOf(file)
	if err != nil {
		return f, corral.ErrorAt(corral.Invalid, "--plot", "%w", err)
	}
	return f, nil
}

// plotPlan draws a plan, or the nearest feasible plan, into the file of --plot, if given.
func plotPlan(c *cli.Context, cl *api.Client, row corral.Plan) error {
	file := c.String("plot")
	if file == "" {
		return nil
	}
	document, err := report.Document(row)
	if err != nil {
		return err
	}
	if !document.Whole() {
		if document.Schedule, err = scheduleApart(c.Context, cl, row); err != nil {
			return err
		}
	}
	figures := []plot.Figure{plot.StaircaseOf(document)}
	if len(document.Front) > 1 {
		figures = append(figures, plot.FrontOf(document))
	}
	return draw(file, figures...)
}

// draw writes figures into a file, in the format of its extension.
func draw(file string, figures ...plot.Figure) error {
	format, err := formatOf(file)
	if err != nil {
		return err
	}
	var drawn bytes.Buffer
	if err := plot.Write(&drawn, format, figures...); err != nil {
		return err
	}
	return os.WriteFile(file, drawn.Bytes(), 0o666)
}
