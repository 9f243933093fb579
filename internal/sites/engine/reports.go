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
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/store"
)

// words holds the output of an ended job.
type words struct {
	report []byte // nil: none
	stderr []byte
	node   []byte // nil: unknown
}

// lastWords reads the output of ended jobs, by tag, within the step's budget of commands. The site's own jobs are
// read first, because glideins wait for a site that is being set up.
func (h *watch) lastWords(ctx context.Context, live []corral.Job, known statuses) (map[string]words, error) {
	read := map[string]words{}
	for _, pilots := range []bool{false, true} {
		var ended []corral.Job
		for _, j := range live {
			if known[j.Tag].Phase == gridsite.Ended && (j.Kind == corral.PilotJob) == pilots {
				ended = append(ended, j)
			}
		}
		if len(ended) == 0 {
			continue
		}
		if err := h.readEnded(ctx, ended, read); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// readEnded reads the output of jobs of one batch system, with one command if that is supported.
func (h *watch) readEnded(ctx context.Context, ended []corral.Job, read map[string]words) error {
	many, ok := h.line.access.Batch(ended[0].Kind).(gridsite.Many)
	if !ok {
		return h.readEach(ctx, ended, read)
	}
	if !h.line.take() {
		return nil
	}
	ended = h.line.some(ended)
	ctx, done := h.line.asking(ctx, "reading the output of ended jobs")
	defer done()
	files, err := many.ReadMany(ctx, tagsOf(ended), []string{jobfiles.ReportFile, "stderr", gridsite.NodeFile})
	if err != nil {
		return err
	}
	for _, j := range ended {
		of := files[j.Tag]
		read[j.Tag] = words{report: of[jobfiles.ReportFile], stderr: of["stderr"], node: of[gridsite.NodeFile]}
	}
	return nil
}

// readEach reads as many jobs as the step has commands for, and at least one.
func (h *watch) readEach(ctx context.Context, ended []corral.Job, read map[string]words) error {
	for i, j := range ended {
		if !h.line.take() && i > 0 {
			return nil
		}
		var w words
		var err error
		if w.report, err = h.line.read(ctx, j, jobfiles.ReportFile); err != nil {
			return err
		}
		if w.report == nil {
			if w.stderr, err = h.line.read(ctx, j, "stderr"); err != nil {
				return err
			}
		}
		read[j.Tag] = w
	}
	return nil
}

// decode returns the report of an ended job or, if there is none, the last line of its stderr.
func (h *watch) decode(j corral.Job, w words) (*reconcile.Report, string) {
	if w.report != nil {
		r, err := jobfiles.DecodeReport(w.report)
		if err == nil {
			h.reports[j.Tag] = r
			return &reconcile.Report{
				Outcome: r.Outcome, Transient: r.Transient, Reason: r.Reason, Lost: admission.LostHosts(r.Lost),
			}, ""
		}
		h.line.lg.Warn("unreadable report", "job", j.Tag, "err", err)
	}
	return nil, gridsite.OneLine(gridsite.LastLine(w.stderr))
}

// noteWaits records why jobs wait in the site's queue, all changes in one transaction: the reasons may change at each
// poll. It remembers the time since which the site has reported that a job can never start.
func (h *watch) noteWaits(ctx context.Context, now time.Time, live []corral.Job, known statuses) error {
	hopeless := map[corral.JobID]time.Time{}
	var changed []corral.Job
	for _, j := range live {
		st := known[j.Tag]
		if st.Phase != gridsite.Queued || st.Waits == "" {
			continue
		}
		if st.Never {
			hopeless[j.ID] = now.UTC()
			if since, before := h.hopeless[j.ID]; before {
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
			if _, err := tx.NoteWaits(j.ID, known[j.Tag].Waits); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap.Errorf(err, "recording why %d jobs wait", len(changed))
}

// noteWorkers records data that the gate has but a batch system lacks: the number of registered workers of each
// attempt, if it is a new maximum, and the hosts on which workers started.
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

// newHosts returns the hosts on which workers have registered since the last record.
func (h *watch) newHosts(workers []corral.Worker) map[string]time.Time {
	hosts := map[string]time.Time{}
	for _, w := range workers {
		if w.RegisteredAt.After(h.worked[w.Host]) && w.RegisteredAt.After(hosts[w.Host]) {
			hosts[w.Host] = w.RegisteredAt
		}
	}
	return hosts
}

// noteLog adds a pilot's log to its attempt's history if it had no link through which it could have reported its
// actions at the time. Each line begins with its time.
func noteLog(tx *store.Tx, job corral.Job, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	if now, err := tx.Job(job.ID); err != nil || now.LeaseHolder != "" {
		return err
	}
	for _, line := range lines[:min(len(lines), delivery.MaxLines)] {
		line = strings.ToValidUTF8(line[:min(len(line), delivery.MaxLineBytes)], "?")
		if err := tx.Log(corral.ObjectJob, int64(job.ID), "pilot said", line); err != nil {
			return err
		}
	}
	return nil
}
