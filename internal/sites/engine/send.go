package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
)

// A sender submits jobs to the site: it records the intent, obtains the job's provision, describes the job, and passes
// it to the batch system. Each job has its tag before it is submitted, so a lost answer can be looked up.
type sender struct {
	line   *line
	cfg    Config
	watch  *watch
	stager *stager
	tokens *tokens
	relay  *siteaccess.Relay
}

// intend records that a job is about to be submitted and returns its row. An attempt's token is derived from its tag;
// only the digest and the expiry time are recorded.
func (s *sender) intend(ctx context.Context, w turn, a reconcile.Submit) (job corral.Job, err error) {
	job = corral.Job{
		Kind: a.Kind, Site: s.line.id, Glidein: a.Glidein, Package: a.Package, Tag: admission.NewTag(a.Kind),
	}
	if g := find(w.Glideins, a.Glidein); g != nil {
		job.TokenDigest = s.cfg.Key.Token(job.Tag).Digest()
		latest := g.LatestStart(corral.Job{CreatedAt: w.now.UTC()})
		job.TokenEndsAt = latest.Add(time.Duration(g.Walltime) + s.cfg.Tokens.Margin)
	}
	err = s.line.write(ctx, func(tx *store.Tx) (err error) {
		if a.Move != "" {
			if _, err := tx.MoveSite(s.line.id, a.Move, a.Reason); err != nil {
				return err
			}
		}
		tx.Because(a.Why())
		job, err = tx.CreateJob(job)
		return err
	})
	return job, err
}

// waits reports whether an unanswered submission must not be resumed now. It is resumed once the site can no longer
// be hiding the job: if the step's poll showed the job, it was adopted; otherwise it is submitted again under the
// same tag.
func (s *sender) waits(w turn, a reconcile.Resume) bool {
	switch {
	case s.watch.missing.MayCome(a.Job.Tag, w.now) || s.tokens.early(w.now, find(w.Glideins, a.Job.Glidein)):
		return true // a poll adopts the job if it appears
	case !s.line.polled: // poll first
		s.line.pace.lookAgain()
		s.line.more = true
		return true
	}
	return !s.line.take()
}

// send submits a job whose intent is recorded and returns the resulting event, to be recorded. It may be called again
// for the same job: tag and token stay the same, and files that were already pushed are reused. Without an event, as
// after an error, the job stays NEW.
func (s *sender) send(ctx context.Context, w turn, job corral.Job) (corral.JobEvent, error) {
	if err := s.line.open(ctx, w.Site); err != nil {
		return corral.JobEvent{}, err
	}
	p, err := s.provide(ctx, w, job)
	var spec gridsite.JobSpec
	if err == nil {
		spec, err = describe(w.World, job, p)
	}
	if err != nil {
		return s.unsendable(ctx, job, err)
	}
	if err := s.avoid(ctx, w.Site, job, &spec); err != nil {
		return corral.JobEvent{}, err
	}
	s.watch.missing.Forget(job.Tag) // if this answer is lost, the batch system may hide the job from now on
	id, err := s.submit(ctx, job, spec)
	if refused := refusal(err); refused != nil {
		return corral.JobEvent{
			Move: corral.JobEnd, Outcome: corral.OutcomeFailed,
			Transient: refused.Transient, Failure: refused.Class, Reason: "the site refused it: " + refused.Text,
		}, nil
	}
	if err != nil {
		return corral.JobEvent{}, fmt.Errorf("submitting %s: %w", job.Name(), err)
	}
	return corral.JobEvent{Move: corral.JobSubmit, SiteJobID: id}, nil
}

// submit passes a job to its batch system, which answers with its own id for the job, with a definite refusal, or not
// at all. If the job is refused with nodes to avoid, perhaps because the batch system uses other names for them, it is
// submitted once more without them.
func (s *sender) submit(ctx context.Context, job corral.Job, spec gridsite.JobSpec) (id string, err error) {
	ctx, done := s.line.asking(ctx, "submitting "+job.Name())
	defer done()
	batch := s.line.access.Batch(job.Kind)
	id, err = batch.Submit(ctx, spec)
	if len(spec.Exclude) == 0 || refusal(err) == nil {
		return id, err
	}
	s.line.lg.Warn("refused, submitting again without nodes to avoid",
		"job", job.Tag, "nodes", spec.Exclude, "err", err)
	spec.Exclude = nil
	return batch.Submit(ctx, spec)
}

// refusal returns the definite refusal that err contains, or nil: a refusal is handled by the glidein's policy, an
// unknown result by a lookup. A violation of the batch system's rules is a permanent refusal.
func refusal(err error) *gridsite.Refused {
	var refused *gridsite.Refused
	if !errors.As(err, &refused) && corral.KindOf(err) == corral.Invalid {
		refused = &gridsite.Refused{Text: err.Error()}
	}
	return refused
}

// unsendable decides on a job that cannot be submitted. A Hopeless error of the site's own setup or cleanup fails the
// site; otherwise it fails only the job, because the packages or pools of some glideins do not concern the others.
func (s *sender) unsendable(ctx context.Context, job corral.Job, err error) (corral.JobEvent, error) {
	var why delivery.Hopeless
	var token tokenless
	switch {
	case errors.As(err, &token): // the job stays NEW until there is a token
		return corral.JobEvent{}, nil
	case !errors.As(err, &why):
		return corral.JobEvent{}, err
	case job.Kind == corral.PilotJob || job.Package != "":
		return corral.JobEvent{
			Move: corral.JobEnd, Outcome: corral.OutcomeFailed,
			Transient: job.Kind == corral.SetupJob, Reason: string(why),
		}, nil
	}
	return corral.JobEvent{}, s.stager.unusable(ctx, err)
}

// avoid excludes nodes on which other attempts failed and records this in the attempt's history.
func (s *sender) avoid(ctx context.Context, site corral.Site, job corral.Job, spec *gridsite.JobSpec) error {
	if job.Kind != corral.PilotJob {
		return nil
	}
	bad, err := store.Read(ctx, s.line.db, func(tx *store.Tx) ([]corral.BadNode, error) {
		return tx.BadNodes(site, job.Queue, spec.Hosts)
	})
	if err != nil {
		return fmt.Errorf("looking for bad nodes of site %s: %w", site.Name, err)
	}
	if len(bad) == 0 {
		return nil
	}
	var why []string
	for _, b := range bad {
		spec.Exclude = append(spec.Exclude, b.Node)
		why = append(why, b.String())
	}
	return s.line.noteJob(ctx, job, "avoid",
		"the batch system is asked to avoid the nodes "+strings.Join(why, ", "))
}
