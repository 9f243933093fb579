// Package orphans finds, adopts and cancels the jobs of ours at a site that the store does not know.
//
// There are none as long as the store is whole: an intent is recorded before a site hears of it. They come with the
// loss of a database, or when an older one is put back. Then pilots work, or wait in queues, of which nobody knows:
// they use up people's allocations, and the site's root cannot be left clean.
//
// A job of ours shows by its directory below the site's root, which is there from its submission on; its batch system
// says how it is. What a pilot was told is in its order. With these three, and the key of its token, its attempt is as
// good as recorded: adoption makes a glidein with an attempt under the same tag, and the engine, which looks each tag
// up before it submits anything, finds it alive. A pilot that dials in meanwhile is neither let in nor sent away
// (gate).
package orphans

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
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
)

const (
	unknown  = "UNKNOWN" // the batch system does not know the job
	some     = 100       // jobs of one command
	grace    = 5 * time.Second
	lookTime = 2 * time.Minute // for a look at a site
	endTime  = 5 * time.Minute // for cancelling all that is there
)

// found is an orphan with what adoption needs of its order.
type found struct {
	api.Orphan
	order *jobfiles.Pilot // nil: it has none that can be read, or is no pilot
}

// look goes to a site and returns the jobs there that the store does not know, by tag.
func look(ctx context.Context, db *store.DB, site corral.Site, access gridsite.Access) ([]found, error) {
	lister, ok := access.Pilots.(gridsite.Lister)
	if !ok {
		return nil, corral.Errorf(corral.Unsatisfiable, "site %s cannot list what it has of ours: its batch "+
			"system is %s", site.Name, site.Batch)
	}
	tags, err := lister.Tags(ctx)
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", site.Name, err)
	}
	var all []found
	err = db.Request(ctx).View(ctx, func(tx *store.Tx) (err error) {
		all, err = strangers(tx, tags)
		return err
	})
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

// strangers returns the jobs with those tags that are of our making, and not recorded, for whichever owner: an account
// at a site may be shared.
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

// inspect asks the batch systems how jobs are, and reads the orders of pilots that are alive.
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

// runsAsPilot reports whether jobs of a kind are in the batch system of pilots: probes are, too.
func runsAsPilot(kind corral.JobKind) bool {
	return kind != corral.SetupJob && kind != corral.CleanupJob
}

// alive reports whether something of a job may run, now or later.
func (o found) alive() bool {
	return o.State == strings.ToUpper(string(gridsite.Queued)) || o.State == strings.ToUpper(string(gridsite.Running))
}

// readOrders reads what pilots that are alive were told, with one command if the batch system can do that.
func readOrders(ctx context.Context, batch gridsite.Batch, group []found) error {
	var tags []string
	for i := range group {
		switch o := &group[i]; {
		case o.Kind != corral.PilotJob:
			o.Kept = "it is no pilot"
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

// filesOf returns the orders of jobs, by tag; that of a job which has none is absent.
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

// tell says what the order does, and whether the pilot can be adopted.
func (o *found) tell() {
	p := o.order
	o.Hosts, o.CPUs, o.MemoryMiB, o.GPUs, o.Walltime = p.Hosts, p.CPUs, p.MemoryMiB, p.GPUs, p.Walltime
	if p.Condor != nil {
		o.Cluster = p.Condor.Cluster
		o.Kept = "its workers are in an HTCondor pool under the number of an attempt that is not known any more"
	}
}

// adopt records a pilot as the attempt of a glidein that has its shape. Nobody knows by what policy it was asked for:
// no other attempt follows it.
func adopt(tx *store.Tx, site corral.Site, cluster corral.Cluster, o found) (api.Orphan, error) {
	if _, err := tx.JobTagged(o.Tag); corral.KindOf(err) != corral.NotFound {
		return o.Orphan, cmp.Or(err, corral.ErrorAt(corral.Conflict, "tags", "%s is known by now", o.Tag))
	}
	p := o.order
	g, err := admit.Adopt(tx, corral.Glidein{
		Owner: site.Owner, Site: site.ID, Cluster: cluster.ID, Hosts: p.Hosts, CPUs: p.CPUs, MemoryMiB: p.MemoryMiB,
		GPUs: p.GPUs, Walltime: p.Walltime, Idle: p.Idle, Labels: map[string]string{"adopted": "true"},
	})
	if err != nil {
		return o.Orphan, err
	}
	j, err := tx.CreateJob(corral.Job{
		Kind: corral.PilotJob, Site: site.ID, Glidein: g.ID, Tag: o.Tag, TokenDigest: admission.Token(p.Token).Digest(),
		TokenEndsAt: g.LatestStart(corral.Job{CreatedAt: tx.Now()}).Add(time.Duration(p.Walltime)),
	})
	if err == nil {
		err = tx.Log(corral.ObjectJob, int64(j.ID), "adopt", fmt.Sprintf("the site has it as %s, %s, and corrald "+
			"had no record of it", cmp.Or(o.SiteJobID, "no job"), o.State))
	}
	o.Glidein, o.Fate = g.ID, "adopted"
	return o.Orphan, err
}

// cancel ends jobs and removes what the site keeps of them. It returns those of which nothing is left.
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
