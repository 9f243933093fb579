package cli

// Lists of runs, and the removal of old runs. A user with many runs needs to list the latest runs or the runs in a
// state, to find out their disk usage, and to remove runs that are over.

import (
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
)

// runStateFlag restricts a list of runs to states.
func runStateFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "state",
		Usage: "only those in `STATE`: " + strings.Join(wordsOf(corral.RunStates), ", ") + "; may be repeated"}
}

func (v runVerbs) listCommand() *cli.Command {
	return &cli.Command{
		Name: "list",
		Flags: []cli.Flag{allFlag(), ownerFlag(), filterFlag(), clusterFlag(), runStateFlag(),
			&cli.IntFlag{Name: "last", Usage: "only the last `N`"},
			&cli.BoolFlag{Name: "disk", Usage: "and the size of their directories on corrald's disk"}},
		Action: v.list,
	}
}

func (v runVerbs) list(c *cli.Context) error {
	if c.IsSet("last") && c.Int("last") < 1 {
		return corral.ErrorAt(corral.Invalid, "--last", "%d is not a number of runs", c.Int("last"))
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	filter := filterOf(c)
	runs, err := cl.Runs(c.Context, filter)
	if err != nil {
		return err
	}
	if c.IsSet("last") {
		runs = runs[max(0, len(runs)-c.Int("last")):]
	}
	if !c.Bool("disk") {
		return runTable.narrowed(filter).list(v.printer, runs)
	}
	kept := make([]runWithDisk, len(runs))
	for i, r := range runs {
		kept[i].Run = r
		if r.State == corral.RunDeleted {
			continue
		}
		if kept[i].Disk, err = cl.RunDisk(c.Context, r.ID); err != nil {
			return err
		}
	}
	return diskTable().narrowed(filter).list(v.printer, kept)
}

// A runWithDisk is a run together with the disk usage of its directory.
type runWithDisk struct {
	corral.Run
	Disk api.DiskUse `json:"disk"`
}

// diskTable returns runTable with an additional column for the disk usage.
func diskTable() listing[runWithDisk] {
	l := listing[runWithDisk]{
		id: func(r runWithDisk) string { return runTable.id(r.Run) }, none: runTable.none,
		owner: func(r runWithDisk) string { return r.Owner },
	}
	for _, c := range runTable.columns {
		l.columns = append(l.columns, column[runWithDisk]{c.name, func(r runWithDisk) any { return c.cell(r.Run) }})
	}
	disk := column[runWithDisk]{"disk", func(r runWithDisk) any { return plan.Bytes(float64(r.Disk.Bytes)) }}
	l.columns = slices.Insert(l.columns, len(l.columns)-1, disk) // before the reason, which is long
	return l
}

func (v runVerbs) cleanCommand() *cli.Command {
	return &cli.Command{
		Name: "clean",
		Flags: []cli.Flag{
			durationFlag("older-than", 0, "those that ended more than `D` ago; 0s: all that are over"),
			runStateFlag(), clusterFlag(), filterFlag(),
			&cli.BoolFlag{Name: "purge", Usage: "delete their directories with the results"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only list them"},
		},
		Action: v.clean,
	}
}

// clean removes the runs that ended longer ago than a given age. It skips a run that has been resumed in the meantime.
func (v runVerbs) clean(c *cli.Context) error {
	age := c.Duration("older-than")
	if !c.IsSet("older-than") || age < 0 {
		return corral.ErrorAt(corral.Invalid, "--older-than", "is missing: name the minimum age, such as 720h")
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	runs, err := cl.Runs(c.Context, filterOf(c))
	if err != nil {
		return err
	}
	before := time.Now().Add(-age)
	old := slices.DeleteFunc(runs, func(r corral.Run) bool {
		return !r.State.Over() || r.State == corral.RunDeleted || r.EndedAt.After(before)
	})
	if c.Bool("dry-run") {
		return cleanTable().list(v.printer, old)
	}
	removed := []corral.Run{}
	for _, r := range old {
		switch r, err := cl.RemoveRun(c.Context, r.ID, c.Bool("purge")); {
		case corral.KindOf(err) == corral.Conflict:
		case err != nil:
			return err
		default:
			removed = append(removed, r)
		}
	}
	return cleanTable().list(v.printer, removed)
}

// cleanTable returns runTable with its own text for an empty list.
func cleanTable() listing[corral.Run] {
	l := runTable
	l.none = "no finished run is that old"
	return l
}
