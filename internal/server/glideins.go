package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
)

func (s *Server) listGlideins(c echo.Context) error {
	q := queryOf(c, "all", "after", "limit", "label", "site", "cluster")
	f := store.GlideinFilter{Filter: q.filter(), Labels: q.labels()}
	if q.err != nil {
		return q.err
	}
	limit := f.Limit
	f.Page = oneMore(f.Page)
	return read(s, c, func(tx *store.Tx) (list api.List[corral.Glidein], err error) {
		if f.Site, err = optional(q, "site", siteID(tx)); err != nil {
			return list, err
		}
		if f.Cluster, err = optional(q, "cluster", clusterID(tx)); err != nil {
			return list, err
		}
		glideins, err := tx.Glideins(f)
		s.present(glideins)
		return listOf(glideins, limit, func(g corral.Glidein) int64 { return int64(g.ID) }), err
	})
}

func (s *Server) createGlidein(c echo.Context) error {
	return change(s, c, http.StatusCreated, func(ctx context.Context, in api.NewGlidein) (step[corral.Glidein], error) {
		g, err := newGlidein(in, actor(c), time.Now())
		if err == nil {
			err = s.canJoin(ctx, in)
		}
		if err != nil {
			return step[corral.Glidein]{}, err
		}
		return only(func(tx *store.Tx) (corral.Glidein, error) {
			if err := s.place(tx, in, &g); err != nil {
				return g, err
			}
			created, err := tx.CreateGlidein(g)
			return created, placed(corral.Conflict, "site", err)
		})
	})
}

// newGlidein is the part of a glidein that needs no look at the store.
func newGlidein(in api.NewGlidein, owner string, now time.Time) (corral.Glidein, error) {
	if err := checkGlidein(in, now); err != nil {
		return corral.Glidein{}, err
	}
	policy, err := resubmit.Parse(in.Resubmit)
	if err != nil {
		return corral.Glidein{}, corral.ErrorAt(corral.Invalid, "resubmit", "%w", err)
	}
	if policy.Mode == resubmit.Until && !policy.Deadline.After(now) {
		return corral.Glidein{}, corral.ErrorAt(corral.Invalid, "resubmit", "%s is over", policy)
	}
	policy.Retries = in.Retries
	g := corral.Glidein{
		Owner:      owner,
		Hosts:      in.Hosts,
		CPUs:       in.CPUs,
		MemoryMiB:  in.MemoryMiB,
		GPUs:       in.GPUs,
		Walltime:   in.Walltime,
		Idle:       in.Idle,
		Overlap:    in.Overlap,
		QueueLimit: in.QueueLimit,
		Resubmit:   policy,
		Labels:     in.Labels,

		BatchOptions: in.BatchOptions,
	}
	if !in.NotBefore.IsZero() {
		g.NotBefore = in.NotBefore.UTC().Truncate(time.Millisecond)
	}
	return g, nil
}

// whereOf finds the site and the cluster that a glidein is asked of.
func whereOf(tx *store.Tx, in api.NewGlidein) (site corral.Site, cluster corral.Cluster, err error) {
	if site, err = siteNamed(tx, "site", in.Site); err != nil {
		return site, cluster, err
	}
	if cluster, err = clusterNamed(tx, "cluster", orDefault(in.Cluster, defaultCluster)); err != nil {
		return site, cluster, err
	}
	if cluster.State != corral.ClusterReady {
		err = corral.ErrorAt(corral.Conflict, "cluster", "%s %s", cluster.Name, cluster.Idle())
	}
	return site, cluster, err
}

// canJoin reports why no worker at the glidein's site could join its cluster.
func (s *Server) canJoin(ctx context.Context, in api.NewGlidein) error {
	var site corral.Site
	var cluster corral.Cluster
	err := s.db.View(ctx, func(tx *store.Tx) (err error) {
		site, cluster, err = whereOf(tx, in)
		return err
	})
	if err != nil || cluster.Kind != corral.Condor {
		return err
	}
	if err := condor.CheckFolder(site.Root); err != nil {
		return corral.ErrorAt(corral.Unsatisfiable, "site", "the root of %s cannot have workers of kind %s: %w", site.Name, cluster.Kind, err)
	}
	return s.cfg.CheckGlidein(ctx, site, cluster)
}

// place finds the glidein's site and cluster and checks that they can give what is asked for.
func (s *Server) place(tx *store.Tx, in api.NewGlidein, g *corral.Glidein) error {
	site, cluster, err := whereOf(tx, in)
	if err != nil {
		return err
	}
	g.Site, g.Cluster = site.ID, cluster.ID
	if err := relayable(in, site, cluster); err != nil {
		return err
	}
	if err := connections(in, cluster, g); err != nil {
		return err
	}
	return s.fits(site, g)
}

// connections sets how the pool of a condor cluster reaches the glidein's workers, and what they offer; it
// refuses what an embedded one has no use for.
func connections(in api.NewGlidein, cluster corral.Cluster, g *corral.Glidein) error {
	if cluster.Kind == corral.Condor {
		g.Broker, g.CCB = orDefault(in.Broker, corral.BrokerAuto), in.CCB
		g.Slots = orDefault(in.Slots, corral.SlotsPartitionable)
		return nil
	}
	var k checker
	none := fmt.Sprintf("workers dial out to cluster %s of kind %s: it has no", cluster.Name, cluster.Kind)
	k.unsatisfiable(in.Broker == corral.BrokerCCB, "broker", "%s %s", none, in.Broker)
	k.unsatisfiable(len(in.CCB) > 0, "ccb", "%s %s", none, corral.BrokerCCB)
	k.unsatisfiable(in.Slots != "", "slots", "workers of cluster %s of kind %s have no slots", cluster.Name, cluster.Kind)
	g.Broker = in.Broker
	return k.err
}

// relayable refuses a relay where none can be, before each attempt fails with that and the site's circuit breaker opens.
// HTCondor's daemons name their pool's address to workers, which must find it there on their own node.
func relayable(in api.NewGlidein, site corral.Site, cluster corral.Cluster) error {
	if in.Broker != corral.BrokerRelay {
		return nil
	}
	var k checker
	pool, err := netip.ParseAddrPort(cluster.Collector)
	k.unsatisfiable(!strings.HasPrefix(site.Contact, "ssh:"), "broker", "site %s is not reached by ssh: there is no relay, and none is needed", site.Name)
	k.unsatisfiable(cluster.Attached, "broker", "a relay leads to pools that corrald runs, and cluster %s is attached", cluster.Name)
	k.unsatisfiable(err == nil && !pool.Addr().IsLoopback(), "broker",
		"a relay can stand for a pool that listens on 127.0.0.1, and that of cluster %s listens on %s: make a cluster with --address 127.0.0.1", cluster.Name, pool)
	return k.err
}

// theGlidein finds the glidein that the path names, with what is registered of it now.
func (s *Server) theGlidein(c echo.Context, tx *store.Tx) (corral.Glidein, error) {
	id, err := idParam[corral.GlideinID](c)
	if err != nil {
		return corral.Glidein{}, err
	}
	g, err := tx.Glidein(id)
	if err != nil {
		return g, missing("id", err)
	}
	return s.presentOne(g), nil
}

// present fills in what is registered of the glideins now.
func (s *Server) present(glideins []corral.Glidein) {
	type sum struct{ workers, cpus int }
	asked := map[corral.ClusterID]bool{}
	sums := map[corral.GlideinID]sum{}
	for _, g := range glideins {
		if asked[g.Cluster] {
			continue
		}
		asked[g.Cluster] = true
		for _, w := range s.workers.Workers(g.Cluster) {
			if was := sums[w.Glidein]; w.Connected {
				sums[w.Glidein] = sum{was.workers + 1, was.cpus + w.CPUs}
			}
		}
	}
	for i := range glideins {
		g := &glideins[i]
		if g.State.Terminal() { // no attempt is alive: whoever is listed is about to be found gone
			continue
		}
		g.WorkersNow, g.CPUsNow = sums[g.ID].workers, sums[g.ID].cpus
	}
}

func (s *Server) presentOne(g corral.Glidein) corral.Glidein {
	one := []corral.Glidein{g}
	s.present(one)
	return one[0]
}

func (s *Server) getGlidein(c echo.Context) error {
	return answerOrWait(s, c, target[corral.Glidein]{
		load: func(tx *store.Tx) (corral.Glidein, error) { return s.theGlidein(c, tx) },
		about: func(g corral.Glidein) store.Subject {
			return store.Subject{Object: corral.ObjectGlidein, ID: int64(g.ID)}
		},
		until: func(list string) (func(corral.Glidein) api.Progress, error) {
			u, err := api.ParseUntilGlidein(list)
			return u.Glidein, err
		},
	})
}

func (s *Server) removeGlidein(c echo.Context) error {
	q := queryOf(c, "now")
	ask := corral.AskDrain
	if q.flag("now") {
		ask = corral.AskCancel
	}
	if q.err != nil {
		return q.err
	}
	return change(s, c, http.StatusOK, func(context.Context, none) (step[corral.Glidein], error) {
		return only(func(tx *store.Tx) (corral.Glidein, error) {
			g, err := s.theGlidein(c, tx)
			if err != nil {
				return g, err
			}
			g, err = tx.AskGlidein(g.ID, ask, "removal was asked for")
			return s.presentOne(g), err
		})
	})
}

// glideinLog answers with a file that an attempt left. The order is not among them: it has the token.
func (s *Server) glideinLog(c echo.Context) error {
	q := queryOf(c, "attempt", "file")
	number, file := q.number("attempt"), q.oneOf("file", "stdout", "stderr", "report.json")
	if q.err != nil {
		return q.err
	}
	job, err := s.theAttempt(c, int(number))
	if err != nil {
		return err
	}
	content, err := s.cfg.JobFile(c.Request().Context(), job, file)
	if errors.Is(err, fs.ErrNotExist) {
		return corral.ErrorAt(corral.NotFound, "file", "%s left no %s", job.Name(), file)
	}
	if err != nil {
		return err
	}
	return sendFile(c, bytes.NewReader(content))
}

// theAttempt finds an attempt, by its number, of the glidein that the path names.
func (s *Server) theAttempt(c echo.Context, number int) (job corral.Job, err error) {
	err = s.db.View(c.Request().Context(), func(tx *store.Tx) error {
		g, err := s.theGlidein(c, tx)
		if err != nil {
			return err
		}
		job, err = attemptOf(g, number)
		return err
	})
	return job, err
}

// attemptOf returns an attempt by its number; 0 is the last.
func attemptOf(g corral.Glidein, number int) (corral.Job, error) {
	for i := len(g.Attempts) - 1; i >= 0; i-- {
		if number == 0 || g.Attempts[i].Number == number {
			return g.Attempts[i], nil
		}
	}
	if number == 0 {
		return corral.Job{}, corral.ErrorAt(corral.NotFound, "attempt", "glidein %d has none yet", g.ID)
	}
	return corral.Job{}, corral.ErrorAt(corral.NotFound, "attempt", "glidein %d has none with number %d", g.ID, number)
}
