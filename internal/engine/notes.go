package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/depot"
	"github.com/corral-pilot/corral/internal/store"
)

// noteWaits records why jobs wait in the site's queue, all that is new with one transaction: a queue may have other
// reasons at each look. It remembers since when the site has said of some that it never starts them.
func (h *watch) noteWaits(
	ctx context.Context, now time.Time, live []corral.Job, statuses map[string]gridsite.JobStatus,
) error {
	hopeless := map[corral.JobID]time.Time{}
	var changed []corral.Job
	for _, j := range live {
		st := statuses[j.Tag]
		if st.Phase != gridsite.Queued || st.Waits == "" {
			continue
		}
		if st.Never {
			hopeless[j.ID] = now.UTC()
			if since, known := h.hopeless[j.ID]; known {
				hopeless[j.ID] = since
			}
		}
		if j.Reason != st.Waits && j.Asked == corral.AskNothing {
			changed = append(changed, j)
		}
	}
	h.hopeless = hopeless
	if len(changed) == 0 {
		return nil
	}
	err := h.line.write(ctx, func(tx *store.Tx) error {
		for _, j := range changed {
			if _, err := tx.NoteWaits(j.ID, statuses[j.Tag].Waits); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("recording why %d jobs wait: %w", len(changed), err)
	}
	return nil
}

// noteWorkers records how many workers of each attempt are registered, where it is more than ever, and on which hosts
// some came to life.
func (h *watch) noteWorkers(ctx context.Context, glideins []corral.Glidein, live []corral.Job) error {
	registered := h.clusters.Registered(glideins)
	for _, j := range live {
		n, hosts := len(registered[j.ID]), h.newHosts(registered[j.ID])
		if j.Kind != corral.PilotJob || n <= j.Workers && len(hosts) == 0 {
			continue
		}
		err := h.line.write(ctx, func(tx *store.Tx) error {
			_, err := tx.NoteWorkers(j.ID, n)
			return errors.Join(err, tx.NoteHosts(h.line.id, hosts))
		})
		if err != nil {
			return fmt.Errorf("recording workers of %s: %w", j.Name(), err)
		}
		maps.Copy(h.worked, hosts)
	}
	return nil
}

// newHosts returns on which hosts workers have come to life since that was recorded last.
func (h *watch) newHosts(workers []corral.Worker) map[string]time.Time {
	hosts := map[string]time.Time{}
	for _, w := range workers {
		if w.RegisteredAt.After(h.worked[w.Host]) && w.RegisteredAt.After(hosts[w.Host]) {
			hosts[w.Host] = w.RegisteredAt
		}
	}
	return hosts
}

// noteLog writes what a pilot did into its attempt's history, if it had no link through which it could say so
// while it did it. Each line begins with its time.
func noteLog(tx *store.Tx, job corral.Job, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	if now, err := tx.Job(job.ID); err != nil || now.LeaseHolder != "" {
		return err
	}
	for _, line := range lines[:min(len(lines), depot.MaxLines)] {
		line = strings.ToValidUTF8(line[:min(len(line), depot.MaxLineBytes)], "?")
		if err := tx.Log(corral.ObjectJob, int64(job.ID), "pilot said", line); err != nil {
			return err
		}
	}
	return nil
}
