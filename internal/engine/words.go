package engine

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/gate"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/internal/reconcile"
)

// words are what an ended job left behind.
type words struct {
	report []byte // nil: there is none
	stderr []byte
	node   []byte // nil: it is not known
}

// lastWords reads what the jobs left that have ended, by tag, as far as the step has commands for that.
func (h *watch) lastWords(
	ctx context.Context, live []corral.Job, statuses map[string]gridsite.JobStatus,
) (map[string]words, error) {
	read := map[string]words{}
	for _, pilots := range []bool{false, true} {
		var ended []corral.Job
		for _, j := range live {
			if statuses[j.Tag].Phase == gridsite.Ended && (j.Kind == corral.PilotJob) == pilots {
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

// readEnded reads what jobs of one batch system left, with one command if it can do that.
func (h *watch) readEnded(ctx context.Context, ended []corral.Job, read map[string]words) error {
	many, ok := h.line.access.Batch(ended[0].Kind).(gridsite.Many)
	if !ok {
		return h.readEach(ctx, ended, read)
	}
	if !h.line.take() {
		return nil
	}
	ended = h.line.some(ended)
	files, err := many.ReadMany(ctx, tagsOf(ended), []string{order.ReportFile, "stderr", gridsite.NodeFile})
	if err != nil {
		return err
	}
	for _, j := range ended {
		of := files[j.Tag]
		read[j.Tag] = words{report: of[order.ReportFile], stderr: of["stderr"], node: of[gridsite.NodeFile]}
	}
	return nil
}

// readEach reads as many as the step has commands for, and at least one.
func (h *watch) readEach(ctx context.Context, ended []corral.Job, read map[string]words) error {
	for i, j := range ended {
		if !h.line.take() && i > 0 {
			return nil
		}
		var w words
		var err error
		if w.report, err = h.line.read(ctx, j, order.ReportFile); err != nil {
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

// decode returns the report that an ended job left, or else the last line of its stderr.
func (h *watch) decode(j corral.Job, w words) (*reconcile.Report, string) {
	if w.report != nil {
		r, err := order.DecodeReport(w.report)
		if err == nil {
			h.reports[j.Tag] = r
			return &reconcile.Report{
				Outcome: r.Outcome, Transient: r.Transient, Reason: r.Reason, Lost: gate.LostHosts(r.Lost),
			}, ""
		}
		h.line.lg.Warn("unreadable report", "job", j.Tag, "err", err)
	}
	return nil, gridsite.OneLine(gridsite.LastLine(w.stderr))
}
