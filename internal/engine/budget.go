package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	// commandsAStep is how many commands a step runs at a site at most, however many jobs are there; what is left is
	// done in the next steps. Setting up a site, and cleaning it up, is not counted: it happens once.
	commandsAStep = 3

	// manyAtOnce is how many jobs are read, cancelled or forgotten with one command.
	manyAtOnce = 100
)

// take takes one of the step's commands. It returns false if none is left: who wanted it is served in a later step.
func (l *siteLoop) take() bool {
	if l.commands >= commandsAStep {
		l.more = true
		return false
	}
	l.commands++
	return true
}

// prune ends jobs that came in under the tag of another one: the answer to their submission was lost, and they were not
// there yet when the tag was looked up. Of the pilots only one starts workers, but all would be paid for. Those that
// found that out and ended by themselves are counted too.
func (l *siteLoop) prune(ctx context.Context, live []corral.Job, statuses map[string]gridsite.JobStatus) error {
	for _, kind := range []corral.JobKind{corral.PilotJob, corral.SetupJob, corral.CleanupJob} {
		batch, ok := l.access.Batch(kind).(gridsite.Pruner)
		if !ok {
			continue
		}
		var ids []string
		var of []corral.Job
		for _, j := range live {
			if j.Kind != kind {
				continue
			}
			for _, id := range statuses[j.Tag].Past {
				if err := l.notePruned(ctx, j, id, "ended by itself"); err != nil {
					return err
				}
			}
			for _, id := range statuses[j.Tag].Extra {
				if time.Since(l.pruned[id]) > visibility {
					ids, of = append(ids, id), append(of, j)
				}
			}
		}
		if len(ids) == 0 || !l.take() {
			continue
		}
		if err := batch.CancelJobs(ctx, ids); err != nil {
			return fmt.Errorf("cancelling jobs that came in twice: %w", err)
		}
		for i, id := range ids {
			if err := l.notePruned(ctx, of[i], id, "was cancelled"); err != nil {
				return err
			}
			l.pruned[id] = time.Now()
		}
	}
	return nil
}

// notePruned counts an extra job once, in the history of the one whose tag it has.
func (l *siteLoop) notePruned(ctx context.Context, j corral.Job, id, end string) error {
	if _, again := l.pruned[id]; again {
		return nil
	}
	l.pruned[id] = time.Now()
	what := "its submission came in twice: the site's job " + id + " "
	return l.write(ctx, func(tx *store.Tx) error {
		history, err := tx.History(corral.ObjectJob, int64(j.ID), store.Page{})
		if err != nil || slices.ContainsFunc(history, func(e corral.Entry) bool { return strings.HasPrefix(e.Reason, what) }) {
			return err // an earlier corrald counted it
		}
		l.e.lg.Warn("a job came in twice", "job", j.Tag, "name", j.Name(), "other", id, "it", end)
		return tx.Log(corral.ObjectJob, int64(j.ID), "extra", what+end)
	})
}
