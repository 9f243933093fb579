package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
)

// statuses holds the batch systems' reports about jobs, by tag.
type statuses map[string]gridsite.JobStatus

// A watch observes a site's jobs. It remembers data that the store need not contain: the time since which a job has
// been missing, and the output of an ended job until its end is recorded.
type watch struct {
	line     *line
	clusters *admission.Clusters

	missing  reconcile.Missing          // times since which jobs have been unknown to the site
	pruned   map[string]time.Time       // :: the site's id of a duplicate job → time of the last cancellation
	hopeless map[corral.JobID]time.Time // :: waiting job → time since which the site has reported that it cannot start
	reports  map[string]jobfiles.Report // :: tag → report of an ended job, until it is recorded
	worked   map[string]time.Time       // :: host → latest recorded registration of a worker
}

func newWatch(way *line, clusters *admission.Clusters) *watch {
	return &watch{
		line: way, clusters: clusters,
		missing: reconcile.Missing{},
		pruned:  map[string]time.Time{},
		reports: map[string]jobfiles.Report{},
		worked:  map[string]time.Time{},
	}
}

// drop discards the data about a job.
func (h *watch) drop(j corral.Job) {
	h.missing.Forget(j.Tag)
	delete(h.reports, j.Tag)
}

// poll queries each of the site's batch systems that has some of the jobs, in one round trip each. A tag missing from
// the answer is unknown to the batch system, perhaps only for now: a batch system may hide a job for a while after
// accepting it.
func (h *watch) poll(ctx context.Context, w turn, live []corral.Job) (statuses, error) {
	var pilots, others []string
	for _, j := range live {
		if j.Kind == corral.PilotJob || w.Site.HeadBatch == w.Site.Batch {
			pilots = append(pilots, j.Tag)
		} else {
			others = append(others, j.Tag)
		}
	}
	took := h.line.stopwatch()
	all := statuses{}
	for _, part := range []struct {
		batch gridsite.Batch
		tags  []string
	}{{h.line.access.Pilots, pilots}, {h.line.access.Setup, others}} {
		if len(part.tags) == 0 {
			continue
		}
		h.line.commands++ // not limited by take: jobs that are not polled cannot be decided on
		asked, done := h.line.asking(ctx, "polling its jobs")
		known, err := part.batch.Poll(asked, part.tags)
		done()
		if err != nil {
			return nil, err
		}
		maps.Copy(all, known)
	}
	h.line.polled = true
	h.line.pace.polled(w.now, took())
	return all, nil
}

// sightings collects the observations of each live job, by tag. A job's output is read before its end is recorded,
// because its own report is more informative than its exit status. Ended jobs that are not read in this step are left
// out: a later step handles their end.
func (h *watch) sightings(
	ctx context.Context, now time.Time, live []corral.Job, known statuses,
) (map[string]reconcile.Sighting, error) {
	left, err := h.lastWords(ctx, live, known)
	if err != nil {
		return nil, err
	}
	seen := map[string]reconcile.Sighting{}
	for _, j := range live {
		var s reconcile.Sighting // empty for a job that is missing
		st, there := known[j.Tag]
		said, read := left[j.Tag]
		switch {
		case there && st.Phase != gridsite.Ended:
			s = sighting(st)
		case there && read:
			s = sighting(st)
			s.Report, s.Stderr = h.decode(j, said)
			s.Node = admission.NodeName(string(said.node))
		case there:
			h.missing.Forget(j.Tag)
			continue
		}
		seen[j.Tag] = h.missing.Looked(j.Tag, s, now.UTC())
	}
	return seen, nil
}

// sighting converts a batch system's report on a job to the types of package reconcile.
func sighting(st gridsite.JobStatus) reconcile.Sighting {
	return reconcile.Sighting{
		Known:     true,
		ID:        st.ID,
		Phase:     reconcile.Phase(st.Phase),
		Exit:      st.Exit,
		Killed:    reconcile.Killed(st.Killed),
		Says:      st.Says,
		StartedAt: st.StartedAt.UTC(),
		EndedAt:   st.EndedAt.UTC(),
	}
}

// prune cancels duplicate jobs, which share the tag of another one: the answer to their submission was lost, and they
// were not yet visible when the tag was looked up. Only one of the pilots starts workers, but all would be charged.
// Duplicates that noticed this and ended by themselves are also recorded.
func (h *watch) prune(ctx context.Context, now time.Time, live []corral.Job, known statuses) error {
	for _, kind := range []corral.JobKind{corral.PilotJob, corral.SetupJob, corral.CleanupJob} {
		batch, ok := h.line.access.Batch(kind).(gridsite.Pruner)
		if !ok {
			continue
		}
		var ids []string
		var of []corral.Job
		for _, j := range live {
			if j.Kind != kind {
				continue
			}
			for _, id := range known[j.Tag].Past {
				if err := h.notePruned(ctx, now, j, id, "ended by itself"); err != nil {
					return err
				}
			}
			for _, id := range known[j.Tag].Extra {
				if now.Sub(h.pruned[id]) > reconcile.Visibility {
					ids, of = append(ids, id), append(of, j)
				}
			}
		}
		if len(ids) == 0 || !h.line.take() {
			continue
		}
		if err := batch.CancelJobs(ctx, ids); err != nil {
			return fmt.Errorf("cancelling duplicate jobs: %w", err)
		}
		for i, id := range ids {
			if err := h.notePruned(ctx, now, of[i], id, "was cancelled"); err != nil {
				return err
			}
			h.pruned[id] = now
		}
	}
	return nil
}

// notePruned records a duplicate job once, in the history of the job whose tag it shares.
func (h *watch) notePruned(ctx context.Context, now time.Time, j corral.Job, id, end string) error {
	if _, again := h.pruned[id]; again {
		return nil
	}
	h.pruned[id] = now
	what := "it was submitted twice: the site's job " + id + " "
	return h.line.write(ctx, func(tx *store.Tx) error {
		history, err := tx.History(corral.ObjectJob, int64(j.ID), store.Page{})
		counted := func(e corral.Entry) bool { return strings.HasPrefix(e.Reason, what) }
		if err != nil || slices.ContainsFunc(history, counted) {
			return err // or an earlier corrald recorded it
		}
		h.line.lg.Warn("a job was submitted twice", "job", j.Tag, "name", j.Name(), "other", id, "it", end)
		return tx.Log(corral.ObjectJob, int64(j.ID), "extra", what+end)
	})
}
