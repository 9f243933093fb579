package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// loadPlan reads the plan of a run from its directory. The directory is the user's, and may be gone or full of other
// things: then a Failed error says so.
func loadPlan(ctx context.Context, row corral.Run) (*plan, error) {
	path := layout{row.Dir}.path(workflowFile)
	document, err := input.ReadFile(path, workflow.DefaultMaxBytes)
	if err != nil {
		return nil, unread(row, corral.Failed, err)
	}
	var flow *workflow.Workflow
	if !row.Options.Open {
		if flow, _, err = wfformat.Read(ctx, bytes.NewReader(document), path, workflow.Options{}); err != nil {
			return nil, err
		}
	}
	p, err := planOf(flow, row.Workflow, row.Options)
	if err != nil {
		return nil, err
	}
	return p.of(row), nil
}

// unread is the error about a run whose workflow cannot be read, of a kind.
func unread(row corral.Run, kind corral.Kind, err error) error {
	if _, gone := os.Stat(row.Dir); errors.Is(gone, fs.ErrNotExist) {
		return corral.Errorf(kind, "run %d has lost its directory %s: its tasks and results are gone with it; "+
			"only its record is left", row.ID, row.Dir)
	}
	return corral.ErrorAt(kind, "dir", "reading the run's workflow: %w", err)
}

// of makes p the plan of a run, which has an id and a directory.
func (p *plan) of(row corral.Run) *plan {
	p.run, p.dir, p.mark, p.pack = row.ID, row.Dir, executor.Mark(row.Dir), packs(row.Options)
	p.care = execution.Care{CopyInputs: row.Options.Inputs == corral.CopyInputs, Trace: row.Options.Trace}
	return p
}

// packs reports whether tasks that are done and left nothing have no directory. A trace is something.
func packs(o corral.RunOptions) bool { return !o.KeepTasks && o.Trace == "" }

// readState reads what became of a run that is not driven now. It changes nothing on disk.
func readState(ctx context.Context, row corral.Run) (*state, error) {
	p, err := loadPlan(ctx, row)
	if err != nil {
		return nil, err
	}
	s := newState(p)
	f, err := input.Open(layout{row.Dir}.path(journalFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil // never started
	}
	if err != nil {
		return nil, fmt.Errorf("opening the run's journal: %w", err)
	}
	defer f.Close()
	if _, err := readJournal(f, s.replay); err != nil && !errors.Is(err, errBad) {
		return nil, fmt.Errorf("reading the run's journal: %w", err)
	}
	return s, nil
}

// openState reads what became of a run and opens its journal for more. Its plan is prepared, or nil: then it is read
// from the run's directory. Where a piece was cut out of
// the journal it leaves a gap, so that no number that may have been used there is used again.
func openState(ctx context.Context, lg *slog.Logger, row corral.Run, prepared *plan, now time.Time) (
	*state, *journal, error,
) {
	if prepared == nil {
		var err error
		if prepared, err = loadPlan(ctx, row); err != nil {
			return nil, nil, err
		}
	}
	p := prepared.of(row)
	s := newState(p)
	j, cut, err := openJournal(lg, layout{p.dir}.path(journalFile), now, s.replay)
	if err != nil || !cut {
		return s, j, err
	}
	floors, err := attemptsOnDisk(p)
	if err != nil {
		return nil, nil, errors.Join(err, j.close())
	}
	left := execution.Record{At: execution.ToMsec(now), Gap: s.x.Gap(floors)}
	if err := j.append(left); err != nil {
		return nil, nil, errors.Join(err, j.close())
	}
	s.replay(left)
	return s, j, nil
}

// attemptsOnDisk finds the highest attempt of each task that has a directory, which is called ID.ATTEMPT. What has
// another form is none of ours.
func attemptsOnDisk(p *plan) ([]execution.Part, error) {
	entries, err := os.ReadDir(layout{p.dir}.path(executor.TasksDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for attempts: %w", err)
	}
	highest := make(map[string]int32)
	for _, e := range entries {
		name := e.Name()
		dot := strings.LastIndexByte(name, '.')
		if n, err := strconv.ParseInt(name[dot+1:], 10, 32); dot > 0 && err == nil {
			highest[name[:dot]] = max(highest[name[:dot]], int32(n))
		}
	}
	var floors []execution.Part
	for i := range p.flow.Tasks {
		if n := highest[p.flow.Tasks[i].ID]; n > 0 {
			floors = append(floors, execution.Part{Task: int32(i), Attempt: n})
		}
	}
	if p.grown != nil { // what added the others is lost, and their numbers will be given again
		for id, n := range highest {
			if i, err := strconv.Atoi(id); err == nil && i > len(p.flow.Tasks) && i <= execution.MostTasks {
				floors = append(floors, execution.Part{Task: int32(i - 1), Attempt: n})
			}
		}
	}
	return floors, nil
}
