package server

// Orphans are jobs of this corrald at a site that the store does not contain. They exist only after a database was lost
// or replaced by an older one, because an intent is recorded before it is sent to a site. Their pilots work or wait
// unattended: they use up allocations and prevent the removal of the site's root.
//
// A job is recognized by its directory below the site's root, which exists from its submission on. The batch system
// reports the job's state, and the job's order contains the instructions for the pilot. Together with the key that
// makes the tokens, these suffice to record the job's attempt: adoption creates a glidein with an attempt that has the
// same tag, and the engine, which looks up each tag before it submits anything, finds the job alive. A pilot that
// connects before that is neither admitted nor sent away (package admission).

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
)

const (
	unknown  = "UNKNOWN" // the batch system has no record of the job
	some     = 100       // number of jobs in one command
	grace    = 5 * time.Second
	lookTime = 2 * time.Minute // for listing a site's jobs
	endTime  = 5 * time.Minute // for cancelling all of a site's orphans
)

// found is an orphan with the parts of its order that adoption needs.
type found struct {
	api.Orphan
	order *jobfiles.PilotOrder // nil: no readable order, or not a pilot
}

// look lists the jobs of corrald at a site that are not in the store.
func look(ctx context.Context, db *store.DB, site corral.Site, access gridsite.Access) ([]found, error) {
	lister, ok := access.Pilots.(gridsite.Lister)
	if !ok {
		return nil, corral.Errorf(corral.Unsatisfiable, "site %s cannot list corrald's jobs: its batch "+
			"system is %s", site.Name, site.Batch)
	}
	tags, err := lister.Tags(ctx)
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", site.Name, err)
	}
	all, err := rest.View(ctx, db, func(tx *store.Tx) ([]found, error) { return strangers(tx, tags) })
	if err != nil {
		return nil, err
	}
	for group := range slices.Chunk(all, some) {
		if err := inspect(ctx, access, group); err != nil {
			return nil, fmt.Errorf("site %s: %w", site.Name, err)
		}
	}
	return all, nil
}

// strangers returns the jobs with the given tags that we created and that are not recorded for any owner. It considers
// all owners, because they may share an account at a site.
func strangers(tx *store.Tx, tags []string) (all []found, err error) {
	for _, tag := range tags {
		kind, ours := admission.KindOfTag(tag)
		if !ours {
			continue
		}
		recorded, err := tx.Recorded(tag)
		if err != nil {
			return nil, err
		}
		if !recorded {
			all = append(all, found{Orphan: api.Orphan{Tag: tag, Kind: kind, State: unknown}})
		}
	}
	return all, nil
}

// inspect queries the jobs' status from the batch systems and reads the orders of live pilots.
func inspect(ctx context.Context, access gridsite.Access, group []found) error {
	for _, pilots := range []bool{true, false} {
		batch, tags := access.Setup, []string(nil)
		if pilots {
			batch = access.Pilots
		}
		for _, o := range group {
			if runsAsPilot(o.Kind) == pilots {
				tags = append(tags, o.Tag)
			}
		}
		if len(tags) == 0 {
			continue
		}
		known, err := batch.Poll(ctx, tags)
		if err != nil {
			return err
		}
		for i := range group {
			if st, ok := known[group[i].Tag]; ok {
				group[i].SiteJobID, group[i].State = st.ID, strings.ToUpper(string(st.Phase))
				group[i].StartedAt = st.StartedAt.UTC()
			}
		}
	}
	return readOrders(ctx, access.Pilots, group)
}

// runsAsPilot reports whether jobs of a kind are in the pilots' batch system, which also includes probes.
func runsAsPilot(kind corral.JobKind) bool {
	return kind != corral.SetupJob && kind != corral.CleanupJob
}

// alive reports whether a job is running or may still run.
func (o found) alive() bool {
	return o.State == strings.ToUpper(string(gridsite.Queued)) || o.State == strings.ToUpper(string(gridsite.Running))
}

// readOrders reads the orders of live pilots, with one command if the batch system supports that.
func readOrders(ctx context.Context, batch gridsite.Batch, group []found) error {
	var tags []string
	for i := range group {
		switch o := &group[i]; {
		case o.Kind != corral.PilotJob:
			o.Kept = "it is not a pilot"
		case !o.alive():
			o.Kept = "it is not alive"
		default:
			tags = append(tags, o.Tag)
		}
	}
	texts, err := filesOf(ctx, batch, tags)
	if err != nil {
		return err
	}
	for i := range group {
		o := &group[i]
		if o.Kept != "" {
			continue
		}
		told, err := jobfiles.Decode(texts[o.Tag])
		if err != nil || told.Pilot == nil {
			o.Kept = "its order cannot be read"
			continue
		}
		o.order = told.Pilot
		o.tell()
	}
	return nil
}

// filesOf returns the orders of jobs, by tag; jobs without an order are left out.
func filesOf(ctx context.Context, batch gridsite.Batch, tags []string) (map[string][]byte, error) {
	texts := map[string][]byte{}
	if many, ok := batch.(gridsite.Many); ok && len(tags) > 0 {
		files, err := many.ReadMany(ctx, tags, []string{jobfiles.File})
		for tag, of := range files {
			texts[tag] = of[jobfiles.File]
		}
		return texts, err
	}
	for _, tag := range tags {
		text, err := batch.Read(ctx, tag, jobfiles.File)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		texts[tag] = text
	}
	return texts, nil
}

// tell copies the order's data and determines whether the pilot can be adopted.
func (o *found) tell() {
	p := o.order
	o.Shape = &p.Shape
	if p.Condor != nil {
		o.Cluster = p.Condor.Cluster
		o.Kept = "its workers are in an HTCondor pool under the number of an attempt that is no longer known"
	}
}

// adopt records a pilot as the attempt of a glidein with its shape. The original resubmission policy is unknown, so
// no other attempt follows.
func adopt(tx *store.Tx, site corral.Site, cluster corral.Cluster, o found) (api.Orphan, error) {
	if _, err := tx.JobTagged(o.Tag); corral.KindOf(err) != corral.NotFound {
		return o.Orphan, cmp.Or(err, corral.ErrorAt(corral.Conflict, "tags", "%s has been recorded meanwhile", o.Tag))
	}
	p := o.order
	g, err := admit.Adopt(tx, corral.Glidein{
		Owner: site.Owner, Site: site.ID, Cluster: cluster.ID, Shape: p.Shape, Speed: p.Speed, Idle: p.Idle,
		MinStay: p.MinStay,
		Labels:  map[string]string{"adopted": "true"},
	})
	if err != nil {
		return o.Orphan, err
	}
	j, err := tx.CreateJob(corral.Job{
		Kind: corral.PilotJob, Site: site.ID, Glidein: g.ID, Tag: o.Tag, TokenDigest: admission.Token(p.Token).Digest(),
		TokenEndsAt: g.LatestStart(corral.Job{CreatedAt: tx.Now()}).Add(time.Duration(p.Walltime)),
	})
	if err == nil {
		err = tx.Log(corral.ObjectJob, int64(j.ID), "adopt", fmt.Sprintf("at the site it is job %s, %s, and corrald "+
			"had no record of it", cmp.Or(o.SiteJobID, "no job"), o.State))
	}
	o.Glidein, o.Fate = g.ID, "adopted"
	return o.Orphan, err
}

// cancel ends jobs and removes their files at the site. It returns the jobs that it has completely removed.
func cancel(ctx context.Context, access gridsite.Access, all []found) ([]api.Orphan, error) {
	var gone []api.Orphan
	for group := range slices.Chunk(all, some) {
		for _, o := range group {
			batch := access.Setup
			if runsAsPilot(o.Kind) {
				batch = access.Pilots
			}
			if err := errors.Join(batch.Cancel(ctx, o.Tag, grace), batch.Forget(ctx, o.Tag)); err != nil {
				return gone, fmt.Errorf("cancelling %s: %w", o.Tag, err)
			}
			o.Fate = "cancelled"
			gone = append(gone, o.Orphan)
		}
	}
	return gone, nil
}
