package admission

import (
	"context"
	"crypto/subtle"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/internal/condor/stream"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/store"
)

// A visitor is the recorded state of the attempt that a connection names.
type visitor struct {
	job     corral.Job
	glidein corral.Glidein // in brief: without attempts that no longer matter
	cluster corral.Cluster
	now     time.Time // the time of the lookup
}

// visitor looks up the attempt with a tag. It returns a NotFound error if there is none.
func (c *Clusters) visitor(ctx context.Context, tag string) (v visitor, err error) {
	err = c.db.Whole().View(ctx, func(whole *store.WholeTx) (err error) {
		v.now = whole.Now()
		if v.job, err = whole.JobTagged(tag); err != nil {
			return err
		}
		site, err := whole.Site(v.job.Site)
		if err != nil {
			return err
		}
		tx := whole.Owner(site.Owner)
		if v.glidein, err = tx.GlideinInBrief(v.job.Glidein); err != nil {
			return err
		}
		v.cluster, err = tx.Cluster(v.glidein.Cluster)
		return err
	})
	return v, err
}

// place names the attempt in an error.
func place(tag string) string { return "attempt " + tag }

// Admit implements port.Gate: the token must belong to the named attempt and must not have expired, and the attempt
// must be live. A worker must also know the secret of the pilot that holds the attempt's lease, belong to an embedded
// cluster, and be one of the workers that the attempt can have; a worker that is not one of them is recorded once in
// the attempt's history. Pilots of all clusters are admitted, so that they can be asked to drain and can report their
// actions.
func (c *Clusters) Admit(ctx context.Context, cred port.Credentials) (port.Admission, error) {
	if id, yes := stream.ClusterOf(cred.Tag); yes {
		in, err := c.streams.admit(id, cred, func(tag string) (visitor, error) { return c.visitor(ctx, tag) })
		in.Links = c.links
		return in, err
	}
	v, err := c.visitor(ctx, cred.Tag)
	if corral.KindOf(err) == corral.NotFound {
		err = unrecorded(c.key, cred)
	}
	if err == nil {
		err = v.mayEnter(cred)
	}
	if err != nil {
		return port.Admission{}, err
	}
	if err := v.fits(cred); err != nil {
		c.misfits.note(ctx, c, v.job, err)
		return port.Admission{}, err
	}
	in := port.Admission{Attempt: v.job.ID, Hosts: v.glidein.Hosts, CPUs: v.glidein.Hosts * v.glidein.CPUs,
		Glidein: v.glidein.ID, Cluster: v.cluster.ID, Links: c.links}
	if v.cluster.Kind != corral.Condor {
		in.Dispatcher = c.dispatcher(v.cluster.ID)
	}
	return in, nil
}

// unrecorded returns the error for a visitor whose attempt is not in the store. If the token was made by this
// corrald, the record was lost and may be restored: the pilot is asked to try again, until a person adopts or cancels
// it as an orphan.
func unrecorded(key Key, cred port.Credentials) error {
	own := key.Token(cred.Tag).Digest()
	if key == nil || subtle.ConstantTimeCompare([]byte(own), []byte(cred.TokenDigest)) != 1 {
		return corral.ErrorAt(corral.Unauthenticated, place(cred.Tag), "is not known here")
	}
	return corral.ErrorAt(corral.Unavailable, place(cred.Tag), "has a token of this corrald, which has lost its "+
		"record: `corral site orphans` adopts or cancels it")
}

// mayEnter decides on the credentials of a visitor.
func (v visitor) mayEnter(cred port.Credentials) error {
	at, job := place(cred.Tag), v.job
	switch {
	case subtle.ConstantTimeCompare([]byte(job.TokenDigest), []byte(cred.TokenDigest)) != 1:
		return corral.ErrorAt(corral.Unauthenticated, at, "the token is not this attempt's")
	case v.now.After(job.TokenEndsAt):
		return corral.ErrorAt(corral.Unauthenticated, at, "the token expired at %s",
			job.TokenEndsAt.Format(time.RFC3339))
	case !job.Live():
		return corral.ErrorAt(corral.Forbidden, at, "ended as %s", job.Outcome)
	case cred.Session == "":
		return corral.ErrorAt(corral.Invalid, at, "a %s must show the secret of its pilot", cred.Role)
	case cred.Role == wire.RolePilot: // the lease is checked next
		return nil
	case job.LeaseHolder == "": // adopted a moment ago: its workers may reconnect before its pilot
		return corral.ErrorAt(corral.Unavailable, at, "its pilot has not come back yet")
	case cred.Holder != job.LeaseHolder:
		return corral.ErrorAt(corral.Forbidden, at, "its lease is not held by this worker's pilot")
	case subtle.ConstantTimeCompare([]byte(job.Session), []byte(cred.Session)) != 1:
		return corral.ErrorAt(corral.Unauthenticated, at, "the secret is not that of the pilot with its lease")
	case v.cluster.Kind == corral.Condor:
		return corral.ErrorAt(corral.Forbidden, at,
			"its workers join the HTCondor pool of cluster %s, not corrald", v.cluster.Name)
	}
	return nil
}

// AdmitThrough decides on a request that came through a site's relay: the attempt must belong to the site and be
// live, and the client must know its token. It returns the address of the attempt's pool, which may be requested only
// if corrald runs the pool. The errors reveal nothing about corrald's state to strangers.
func (c *Clusters) AdmitThrough(ctx context.Context, site corral.SiteID, q relay.Request) (pool string, err error) {
	if id, yes := stream.ClusterOf(q.Tag); yes {
		return "", c.streams.admitThrough(id, q)
	}
	v, err := c.visitor(ctx, q.Tag)
	if err != nil && corral.KindOf(err) != corral.NotFound {
		return "", corral.Errorf(corral.Unavailable, "corrald cannot look it up now")
	}
	at := place(q.Tag)
	if err != nil && c.key != nil && q.Proves(c.key.Token(q.Tag).Digest()) {
		return "", corral.ErrorAt(corral.Unavailable, at, "is not recorded now")
	}
	switch {
	case err != nil, v.job.Site != site, !v.proved(q):
		return "", corral.ErrorAt(corral.Unauthenticated, at, "is not known here")
	case !v.job.Live() || v.now.After(v.job.TokenEndsAt):
		return "", corral.ErrorAt(corral.Forbidden, at, "is over")
	case q.Target == relay.Pool && (v.cluster.Kind != corral.Condor || v.cluster.Attached):
		return "", corral.ErrorAt(corral.Forbidden, at,
			"its cluster %s has no pool that corrald runs", v.cluster.Name)
	}
	return v.cluster.Collector, nil
}

// proved reports whether a request through a relay proves knowledge of its attempt's secret. For the worker port this
// is the session's secret, once there is one. For the pool it is the attempt's token, because the daemons there have no
// other secret; that token only opens the connection to the pool, which requires its own token.
func (v visitor) proved(q relay.Request) bool {
	if q.Target == relay.Workers && v.job.Session != "" {
		return q.Proves(v.job.Session)
	}
	return q.Proves(v.job.TokenDigest)
}

// Lease implements port.Gate: the first holder keeps the attempt permanently.
func (c *Clusters) Lease(ctx context.Context, attempt corral.JobID, holder, session string) error {
	return write(ctx, c.db, attempt, func(tx *store.Tx) error {
		return store.Done(tx.LeaseJob(attempt, holder, session))
	})
}

// write changes an attempt's record on behalf of its owner.
func write(ctx context.Context, db *store.DB, attempt corral.JobID, fn func(*store.Tx) error) error {
	owner, err := store.ReadWhole(ctx, db, func(tx *store.WholeTx) (string, error) {
		job, err := tx.Job(attempt)
		if err != nil {
			return "", err
		}
		site, err := tx.Site(job.Site)
		return site.Owner, err
	})
	if err != nil {
		return err
	}
	return db.Owner(owner).Write(ctx, store.Actor, fn)
}

// LoseHost implements port.Gate.
func (c *Clusters) LoseHost(ctx context.Context, attempt corral.JobID, lost corral.LostHost) error {
	defer c.Notify()
	return write(ctx, c.db, attempt, func(tx *store.Tx) error {
		_, err := tx.LoseHost(attempt, LostHosts([]corral.LostHost{lost})[0])
		return err
	})
}

// Report implements port.Gate: it adds a pilot's report about itself to the attempt's history.
func (c *Clusters) Report(ctx context.Context, attempt corral.JobID, phase, reason string) error {
	defer c.Notify()
	return write(ctx, c.db, attempt, func(tx *store.Tx) error {
		return tx.Log(corral.ObjectJob, int64(attempt), phase, reason)
	})
}

const (
	maxLost     = 1024 // maximum number of lost hosts recorded per attempt
	maxNodeName = 255  // bytes, as in DNS
)

// LostHosts returns the hosts that a pilot reports as lost, with names and reasons that are safe to show: at most
// 1024 hosts, names as NodeName returns them, and reasons of one line.
func LostHosts(told []corral.LostHost) (lost []corral.LostHost) {
	for _, l := range told[:min(len(told), maxLost)] {
		l.Node, l.Why = NodeName(l.Node), jobfiles.OneLine(l.Why)
		lost = append(lost, l)
	}
	return lost
}

// NodeName returns the name of a node from a report or a batch system, or "" if it cannot be a host name. The name may
// be passed back to the batch system as the name of a node to avoid, so the batch system must not be able to read it as
// an option or a list.
func NodeName(said string) string {
	said = strings.TrimSpace(said)
	for _, r := range said {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
		default:
			return ""
		}
	}
	if len(said) > maxNodeName || strings.HasPrefix(said, "-") {
		return ""
	}
	return said
}
