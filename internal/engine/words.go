package engine

import (
	"context"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/internal/reconcile"
)

// words are what an ended job left behind.
type words struct {
	report []byte // nil: there is none
	stderr []byte
	node   []byte // nil: it is not known
}

// lastWords reads what the jobs left that have ended, by tag. Those that are not read in this step are absent: they are
// seen to have ended in a later one.
func (l *siteLoop) lastWords(ctx context.Context, live []corral.Job, statuses map[string]gridsite.JobStatus) (map[string]words, error) {
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
		if err := l.readEnded(ctx, ended, read); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// readEnded reads what jobs of one batch system left, with one command if it can do that.
func (l *siteLoop) readEnded(ctx context.Context, ended []corral.Job, read map[string]words) error {
	many, ok := l.access.Batch(ended[0].Kind).(gridsite.Many)
	if !ok {
		return l.readEach(ctx, ended, read)
	}
	if !l.take() {
		return nil
	}
	if len(ended) > manyAtOnce {
		ended, l.more = ended[:manyAtOnce], true
	}
	files, err := many.ReadMany(ctx, tagsOf(ended), []string{order.ReportFile, "stderr", gridsite.NodeFile})
	if err != nil {
		return err
	}
	for _, j := range ended {
		read[j.Tag] = words{report: files[j.Tag][order.ReportFile], stderr: files[j.Tag]["stderr"], node: files[j.Tag][gridsite.NodeFile]}
	}
	return nil
}

// readEach reads as many as the step has commands for, and at least one.
func (l *siteLoop) readEach(ctx context.Context, ended []corral.Job, read map[string]words) error {
	for i, j := range ended {
		if !l.take() && i > 0 {
			return nil
		}
		var w words
		var err error
		if w.report, err = l.read(ctx, j, order.ReportFile); err != nil {
			return err
		}
		if w.report == nil {
			if w.stderr, err = l.read(ctx, j, "stderr"); err != nil {
				return err
			}
		}
		read[j.Tag] = w
	}
	return nil
}

// decode returns the report that an ended job left, or else the last line of its stderr.
func (l *siteLoop) decode(j corral.Job, w words) (*reconcile.Report, string) {
	if w.report != nil {
		r, err := order.DecodeReport(w.report)
		if err == nil {
			l.reports[j.Tag] = r
			return &reconcile.Report{Outcome: r.Outcome, Transient: r.Transient, Reason: r.Reason, Lost: lostHosts(r.Lost)}, ""
		}
		l.e.lg.Warn("unreadable report", "job", j.Tag, "err", err)
	}
	return nil, lastLine(w.stderr)
}

const maxLost = 1024 // hosts of one attempt that are kept

// lostHosts are those that a pilot tells of, as far as that is fit for others to see.
func lostHosts(told []corral.LostHost) (lost []corral.LostHost) {
	for _, l := range told[:min(len(told), maxLost)] {
		l.Node, l.Why = nodeName(l.Node), order.OneLine(l.Why)
		lost = append(lost, l)
	}
	return lost
}

// nodeName returns what a report, or a batch system, calls a node, unless that is no host's name: batch systems are told of it.
func nodeName(said string) string {
	said = strings.TrimSpace(said)
	const most = 255
	for _, r := range said {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
		default:
			return ""
		}
	}
	if len(said) > most || said != "" && said[0] == '-' {
		return ""
	}
	return said
}

func tagsOf(jobs []corral.Job) []string {
	tags := make([]string, len(jobs))
	for i, j := range jobs {
		tags[i] = j.Tag
	}
	return tags
}
