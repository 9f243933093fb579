package engine

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/internal/store"
)

// A queue is a batch system in which pilots wait forever. Their files are in their directories, as usual; setup and
// cleanup jobs run.
type queue struct {
	gridsite.Batch
	root string
	all  *sync.Map // :: tag → gridsite.Phase; "why" → the reason why all wait, a string
}

// queues makes pilots wait at all sites of a world; the sites are below dir.
func queues(dir string) func(gridsite.Batch) gridsite.Batch {
	all := &sync.Map{}
	return func(b gridsite.Batch) gridsite.Batch { return queue{b, filepath.Join(dir, "here"), all} }
}

func (q queue) Submit(ctx context.Context, spec gridsite.JobSpec) (string, error) {
	if spec.Argv[0] != "run" {
		return q.Batch.Submit(ctx, spec)
	}
	dir := jobdir.Path(q.root, spec.Tag)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for name, b := range spec.Files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return "", err
		}
	}
	q.all.Store(spec.Tag, gridsite.Queued)
	return "1", nil
}

func (q queue) Poll(ctx context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	var rest []string
	found := map[string]gridsite.JobStatus{}
	for _, tag := range tags {
		phase, ok := q.all.Load(tag)
		if !ok {
			rest = append(rest, tag)
			continue
		}
		st := gridsite.JobStatus{Tag: tag, ID: "1", Phase: phase.(gridsite.Phase)}
		if why, ok := q.all.Load("why"); ok && st.Phase == gridsite.Queued {
			st.Waits = why.(string)
		}
		if st.Phase == gridsite.Ended {
			st.Killed, st.EndedAt = gridsite.ByCancel, time.Now()
		}
		found[tag] = st
	}
	if len(rest) == 0 {
		return found, nil
	}
	others, err := q.Batch.Poll(ctx, rest)
	for tag, st := range others {
		found[tag] = st
	}
	return found, err
}

func (q queue) Cancel(ctx context.Context, tag string, grace time.Duration) error {
	if _, ok := q.all.Load(tag); !ok {
		return q.Batch.Cancel(ctx, tag, grace)
	}
	q.all.Store(tag, gridsite.Ended)
	return nil
}

// queued waits until the glidein's last attempt waits in the site's queue.
func (w *world) queued(id corral.GlideinID) corral.Job {
	w.t.Helper()
	w.attemptIs(id, corral.JobQueued)
	a := w.glideinNow(id).Attempts
	return a[len(a)-1]
}

// history returns an object's history entries as "event: reason".
func (w *world) history(object string, id int64) (lines []string) {
	w.t.Helper()
	w.view(func(tx *store.Tx) error {
		entries, err := tx.History(object, id, store.Page{})
		for _, e := range entries {
			lines = append(lines, e.Event+": "+e.Reason)
		}
		return err
	})
	return lines
}
