package ensembles

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan/ensemble/record"
	"github.com/corral-pilot/corral/workflow"
)

// A Shelf is the folder in which the workflows of ensembles are kept until the ensembles have ended. It contains a
// folder for each ensemble, with the request for the run of each of the ensemble's workflows.
type Shelf string

func (s Shelf) path(files string, member int) string {
	return filepath.Join(string(s), files, fmt.Sprintf("%d.json", member))
}

// Put stores the workflows of a drafted ensemble, and sets their folder in its row. If the row is not committed, the
// caller must call Remove.
func (s Shelf) Put(x *Drafted) error {
	x.Row.Files = rand.Text()
	dir := filepath.Join(string(s), x.Row.Files)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keeping an ensemble's workflows: %w", err)
	}
	for k, r := range x.Runs {
		text, err := json.Marshal(r)
		if err == nil {
			err = atomicfile.Keep(s.path(x.Row.Files, k), text, 0o600)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("keeping an ensemble's workflows: %w", err), s.Remove(x.Row.Files))
		}
	}
	return nil
}

// Remove deletes the workflows of an ensemble.
func (s Shelf) Remove(files string) error { return os.RemoveAll(filepath.Join(string(s), files)) }

// request returns the request for the run of a member.
func (s Shelf) request(files string, member int) (r api.NewRun, err error) {
	text, err := os.ReadFile(s.path(files, member))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, wrap.Errorf(err, "reading workflow %d of an ensemble", member)
}

// direction recreates the direction of an ensemble as it was at the ensemble's creation. It reads no workflows for an
// ensemble that is ending, because they are not needed for that.
func (s Shelf) direction(ctx context.Context, row record.Ensemble) (Direction, error) {
	if row.State == record.Ending {
		return direct(row, nil)
	}
	var flows []*workflow.Workflow
	for k := range row.Members {
		r, err := s.request(row.Files, k)
		if err != nil {
			return Direction{}, err
		}
		flow, err := read(ctx, r.WorkflowName, r.Workflow)
		if err != nil {
			return Direction{}, err
		}
		flows = append(flows, flow)
	}
	d, err := direct(row, flows)
	if err != nil {
		return d, err
	}
	return d.with(row.Choice)
}

// forgotten is the age after which files without a row cannot belong to an ensemble that is about to be created.
const forgotten = time.Hour

// sweep removes the files of ensembles that have ended or were never created.
func (k *Keeper) sweep(ctx context.Context) {
	entries, err := os.ReadDir(string(k.Shelf))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	open, err2 := store.ReadWhole(ctx, k.DB, (*store.WholeTx).OpenEnsembles)
	if err = errors.Join(err, err2); err != nil {
		k.Log.Warn("looking for files of ensembles that have ended", "error", err)
		return
	}
	named := map[string]bool{}
	for _, row := range open {
		named[row.Files] = true
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || named[e.Name()] || time.Since(info.ModTime()) < forgotten {
			continue
		}
		if err := k.Shelf.Remove(e.Name()); err != nil {
			k.Log.Warn("removing files of an ensemble that has ended", "folder", e.Name(), "error", err)
		}
	}
}
