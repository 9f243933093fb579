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
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// loadPlan reads the plan of a run from its directory. The directory belongs to the user and may be missing or contain
// other files: then the error is of kind Failed.
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

// unread returns an error of the given kind for a run whose workflow cannot be read.
func unread(row corral.Run, kind corral.Kind, err error) error {
	if _, gone := os.Stat(row.Dir); errors.Is(gone, fs.ErrNotExist) {
		return corral.Errorf(kind, "the directory of run %d, %s, has been removed with its tasks and results; "+
			"only its record is left", row.ID, row.Dir)
	}
	return corral.ErrorAt(kind, "dir", "reading the run's workflow: %w", err)
}

// of sets the values of a plan that depend on its run, such as the id and the directory.
func (p *plan) of(row corral.Run) *plan {
	p.run, p.dir, p.mark, p.pack = row.ID, row.Dir, executor.Mark(row.Dir), packs(row.Options)
	p.care = execution.Care{CopyInputs: row.Options.Inputs == corral.CopyInputs, Trace: row.Options.Trace}
	return p
}

// packs reports whether the directories of tasks that are done and left no files are removed. A trace is a file.
func packs(o corral.RunOptions) bool { return !o.KeepTasks && o.Trace == "" }

// readState reads the state of a run that is not being driven. It changes nothing on disk.
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

// openState reads the state of a run and opens its journal for appending. If prepared is nil, it reads the plan from
// the run's directory. If a piece was cut out of the journal, it adds a gap, so that numbers that may have been used
// there are not reused.
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

// attemptsOnDisk returns the highest attempt of each task that has a directory. The directories are named ID.ATTEMPT;
// other names are ignored.
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
	if p.grown != nil { // the additions of other tasks are lost, and their numbers will be reused
		for id, n := range highest {
			if i, err := strconv.Atoi(id); err == nil && i > len(p.flow.Tasks) && i <= execution.MostTasks {
				floors = append(floors, execution.Part{Task: int32(i - 1), Attempt: n})
			}
		}
	}
	return floors, nil
}
