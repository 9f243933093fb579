package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	mintTime  = 10 * time.Second // for a pool to create a token
	clockSkew = time.Minute      // tolerance for the expiry time of a token
)

// tokenless is the reason why an attempt has no token now.
type tokenless string

func (t tokenless) Error() string { return string(t) }

// tokens manages the tokens with which attempts' workers join HTCondor pools. Each token is recorded in the store
// before it is brought to the site, and is replaced there before it expires while the attempt waits in the queue. A
// pool that issues no token is asked again later, while the site's other work continues.
type tokens struct {
	line      *line
	clusters  *admission.Clusters
	lifetimes reconcile.Lifetimes

	placed  map[corral.JobID]time.Time // :: attempt → time since which it has the newest pool token
	retries map[corral.ClusterID]retry // clusters whose pool issued no token at the last request
}

func newTokens(way *line, clusters *admission.Clusters, lifetimes reconcile.Lifetimes) *tokens {
	return &tokens{
		line: way, clusters: clusters, lifetimes: lifetimes,
		placed: map[corral.JobID]time.Time{}, retries: map[corral.ClusterID]retry{},
	}
}

// drop discards the data about a job's token.
func (t *tokens) drop(j corral.Job) { delete(t.placed, j.ID) }

// waiting returns the expiry times of the tokens that wait with attempts at the site. A token is recorded before it
// is brought there. Unless this loop brought the last one, the site may have any of them, and the first to expire
// counts.
func (t *tokens) waiting(tx *store.Tx) (map[corral.JobID]reconcile.Token, error) {
	all := map[corral.JobID]reconcile.Token{}
	tokens, err := tx.PoolTokensWaiting(t.line.id)
	for _, token := range tokens { // the first to expire first
		since, placed := t.placed[token.Attempt]
		if _, known := all[token.Attempt]; !known || placed {
			all[token.Attempt] = reconcile.Token{Ends: token.EndsAt, Since: since}
		}
	}
	return all, err
}

// mint creates a token for an attempt. The error is tokenless if the pool issues no token now, and Hopeless if it will
// never issue one; the reason is added to the attempt's history.
func (t *tokens) mint(
	ctx context.Context, now time.Time, g corral.Glidein, job corral.Job,
) (secret string, ends time.Time, err error) {
	r := t.retries[g.Cluster]
	if now.Before(r.at) {
		return "", ends, tokenless(r.why)
	}
	limited, cancel := context.WithTimeout(ctx, mintTime)
	defer cancel()
	lifetime := t.lifetimes.Of(g, job, now.UTC())
	secret, ends, err = t.clusters.Mint(limited, g.Cluster, job.ID, lifetime)
	switch {
	case err == nil:
		delete(t.retries, g.Cluster)
		return secret, ends, t.minted(ctx, job, ends, now.UTC().Add(lifetime))
	case ctx.Err() != nil:
		return "", ends, ctx.Err()
	}
	return "", ends, t.refused(ctx, now, g, job, err)
}

// refused records why a pool issued no token and sets the time of the next request: the interval increases each time.
func (t *tokens) refused(ctx context.Context, now time.Time, g corral.Glidein, job corral.Job, err error) error {
	before := t.retries[g.Cluster]
	why := "there is no token for the workers: " + err.Error()
	if why != before.why {
		if err := t.line.noteJob(ctx, job, "token", why); err != nil {
			return err
		}
	}
	pause := min(max(2*before.pause, troubleMin), troubleMax)
	t.retries[g.Cluster] = retry{at: now.Add(pause), pause: pause, why: why}
	if corral.KindOf(err) == corral.Forbidden {
		return delivery.Hopeless(why)
	}
	return tokenless(why)
}

// minted records a new token that is not yet at the site. A token that expires too soon is used anyway: it lets the
// workers join until then. The first such token of each attempt is reported.
func (t *tokens) minted(ctx context.Context, job corral.Job, ends, wanted time.Time) error {
	_, renewed := t.placed[job.ID]
	delete(t.placed, job.ID)
	if renewed || job.State != corral.JobNew || !ends.Add(clockSkew).Before(wanted) {
		return nil
	}
	return t.line.noteJob(ctx, job, "token", fmt.Sprintf("the pool's token for the workers ends at %s, where %s was "+
		"asked for: the pool may refuse them after that", ends.UTC().Format(time.RFC3339), wanted.Format(time.RFC3339)))
}

// early reports whether a glidein's pool issued no token and it is too early to ask again.
func (t *tokens) early(now time.Time, g *corral.Glidein) bool {
	return g != nil && now.Before(t.retries[g.Cluster].at)
}

// renew replaces the token that waits with an attempt. If the site starts the attempt at the same moment, its workers
// join with the old token, which is still valid for a while, and the new one is revoked with the attempt.
func (t *tokens) renew(ctx context.Context, w turn, a reconcile.Renew) error {
	g := find(w.Glideins, a.Job.Glidein)
	if g == nil {
		return nil // unreachable: it is the attempt's glidein
	}
	if !t.line.take() {
		return nil
	}
	secret, ends, err := t.mint(ctx, w.now, *g, a.Job)
	var later tokenless
	var never delivery.Hopeless
	if errors.As(err, &later) || errors.As(err, &never) { // the existing token may suffice
		return nil
	}
	if err != nil {
		return err
	}
	if !ends.After(w.Tokens[a.Job.ID].Ends) { // the existing token is as good
		t.placed[a.Job.ID] = w.now.UTC()
		return nil
	}
	t.line.acting(w.Site, a)
	if err := t.line.open(ctx, w.Site); err != nil {
		return err
	}
	if err := t.line.access.Head.Replace(ctx, a.Job.Tag, jobfiles.PoolToken, []byte(secret)); err != nil {
		return fmt.Errorf("replacing the token of %s: %w", a.Job.Name(), err)
	}
	t.placed[a.Job.ID] = w.now.UTC()
	return t.line.noteJob(ctx, a.Job, "token", "it was replaced at the site before it expired")
}
