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

// A sender brings jobs to the site: it records the intent, gets what the job needs, describes it, and hands it to the
// batch system. Each job has its tag before the site hears of it, so that an answer that is lost can be looked up.
type sender struct {
	line   *line
	cfg    Config
	watch  *watch
	stager *stager
	tokens *tokens
	relay  *siteaccess.Relay
}

// intend records that a job is about to be submitted, and returns its row. The token of an attempt is made of its tag;
// only its digest is recorded, and until when it is good.
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

// waits reports whether an unanswered submission is not taken up now. That happens once the site cannot hide it any
// longer: what the step's poll knew of it was adopted already; what it did not know is submitted again, under the same
// tag.
func (s *sender) waits(w turn, a reconcile.Resume) bool {
	switch {
	case s.watch.missing.MayCome(a.Job.Tag, w.now) || s.tokens.early(w.now, find(w.Glideins, a.Job.Glidein)):
		return true // each poll adopts it if it shows up
	case !s.line.polled: // look first
		s.line.pace.lookAgain()
		s.line.more = true
		return true
	}
	return !s.line.take()
}

// send submits a job whose intent is recorded, and returns what came of it, to be recorded. It may be called again for
// the same job: tag and token stay the same, and what was pushed before is found there. No event means that the job
// stays NEW, as it does after an error.
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

// submit hands a job to its batch system, which answers with its own id, with a definite no, or not at all. One that
// does not take the names of the nodes to avoid, because it knows the nodes by others, is asked once more without.
func (s *sender) submit(ctx context.Context, job corral.Job, spec gridsite.JobSpec) (id string, err error) {
	ctx, done := s.line.asking(ctx, "submitting "+job.Name())
	defer done()
	batch := s.line.access.Batch(job.Kind)
	id, err = batch.Submit(ctx, spec)
	if len(spec.Exclude) == 0 || refusal(err) == nil {
		return id, err
	}
	s.line.lg.Warn("refused, and asked again without nodes to avoid",
		"job", job.Tag, "nodes", spec.Exclude, "err", err)
	spec.Exclude = nil
	return batch.Submit(ctx, spec)
}

// refusal returns the definite no that err is, or nil: "it refused" goes to the policy of the glidein, "we do not know"
// is looked up. What the batch system's rules forbid it refuses for good.
func refusal(err error) *gridsite.Refused {
	var refused *gridsite.Refused
	if !errors.As(err, &refused) && corral.KindOf(err) == corral.Invalid {
		refused = &gridsite.Refused{Text: err.Error()}
	}
	return refused
}

// unsendable decides about a job that cannot be described to its site. What is hopeless fails the site if that is its
// own setup or cleanup, and else only the job: a package or a pool of some glideins is no concern of the others.
func (s *sender) unsendable(ctx context.Context, job corral.Job, err error) (corral.JobEvent, error) {
	var why delivery.Hopeless
	var token tokenless
	switch {
	case errors.As(err, &token): // the job stays NEW until there is one
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

// avoid has an attempt keep away from nodes on which others failed, and says so in its history.
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
		"the batch system is asked for other nodes than "+strings.Join(why, ", "))
}
