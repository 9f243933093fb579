package store

import (
	"errors"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// owners holds the accounts that an administrator has suspended, ended or reinstated. All other owners exist only
// through their objects.
var owners = table[corral.Owner]{
	noun: corral.ObjectOwner,
	name: "owners",
	columns: func(o *corral.Owner) []column {
		return []column{
			{"id", orNull(&o.ID)},
			{"name", &o.Name},
			{"state", &o.State},
			{"reason", &o.Reason},
			{"moved_by", &o.By},
			{"created_at_ms", at(&o.CreatedAt)},
			{"updated_at_ms", at(&o.UpdatedAt)},
		}
	},
	about: func(o corral.Owner) []Subject { return []Subject{{corral.ObjectOwner, int64(o.ID)}} },
}

// account returns an owner's record, or the default, an ACTIVE account, if the owner has no record.
func (t *Tx) account(name string) (corral.Owner, error) {
	o, err := owners.one(t, name, "name = ?", name)
	if corral.KindOf(err) == corral.NotFound {
		return corral.Owner{Name: name, State: corral.OwnerActive}, nil
	}
	return o, err
}

// Refusal returns the reason why no work is done for an owner, or "" if the account is ACTIVE. Code that is about to
// request new objects calls it first and reports why it waits. In any case internal/work/admit, through which all such
// requests pass, refuses them.
func (t *Tx) Refusal(owner string) (string, error) {
	o, err := t.account(owner)
	return o.Refusal(), err
}

// Owner returns an owner together with the numbers of its objects. It returns a NotFound error if no owner of that name
// has or had an object.
func (t *Tx) Owner(name string) (corral.Owner, error) {
	o, err := t.account(name)
	if err != nil {
		return o, err
	}
	if o.Has, err = t.has(name); err != nil {
		return o, err
	}
	if o.ID == 0 && o.Has == (corral.Holdings{}) {
		var known bool
		err = t.row("select exists (select 1 from ("+everyOwner+") where owner = ?)", []any{name}, &known)
		if err == nil && !known {
			err = corral.NoSuch(corral.ObjectOwner, name)
		}
	}
	return o, err
}

// everyOwner selects the names of all owners.
const everyOwner = `
	select name as owner from owners
	union select owner from tokens
	union select owner from sites
	union select owner from clusters
	union select owner from glideins
	union select owner from runs
	union select owner from plans
	union select owner from ensembles
	union select owner from profiles`

// Owners lists all owners by name, each with the numbers of its objects. With all, it includes ENDED owners. It
// counts in tables that have no index on the owner, an acceptable cost for an administrator's request.
func (t *Tx) Owners(all bool) (list []corral.Owner, err error) {
	const query = "select owner from (" + everyOwner + ") order by owner"
	names, err := collect(t, query, nil, func(name *string) []any { return []any{name} })
	for _, name := range names {
		var o corral.Owner
		if err == nil {
			o, err = t.Owner(name)
		}
		if all || o.State != corral.OwnerEnded {
			list = append(list, o)
		}
	}
	return list, wrap.Errorf(err, "listing owners")
}

// EndingOwners lists the owners that are ENDING.
func (t *Tx) EndingOwners() ([]corral.Owner, error) {
	return owners.list(t, where("state = 'ENDING'"))
}

// has counts an owner's objects.
func (t *Tx) has(name string) (h corral.Holdings, err error) {
	err = t.row(`
		select
			(select count(*) from tokens where owner = ?1 and state = 'VALID'
				and (expires_at_ms is null or expires_at_ms > ?2)),
			(select count(*) from sites where owner = ?1 and state <> 'DELETED'),
			(select count(*) from clusters where owner = ?1 and state <> 'DELETED'),
			(select count(*) from glideins where owner = ?1 and `+liveGlidein+`),
			(select count(*) from runs where owner = ?1 and `+liveRun+`),
			(select count(*) from plans where owner = ?1 and state = 'PROVISIONED'),
			(select count(*) from scales where owner = ?1),
			(select count(*) from ensembles where owner = ?1 and state in ('RUNNING', 'ENDING')),
			(select count(*) from runs where owner = ?1 and state <> 'DELETED')`,
		[]any{name, at(&t.now)}, &h.Tokens, &h.Sites, &h.Clusters, &h.Glideins, &h.Runs, &h.Plans, &h.Scales,
		&h.Ensembles, &h.Records)
	return h, wrap.Errorf(err, "counting the objects of %s", name)
}

// MoveOwner applies move to an owner and creates the record if there is none. Ending an owner revokes all its tokens
// at once. When an owner is suspended or reinstated, its sites are checked again, because the account's state decides
// whether new attempts are allowed.
func (t *Tx) MoveOwner(name string, move corral.OwnerMove, reason string) (corral.Owner, error) {
	before, err := t.account(name)
	if err != nil {
		return before, err
	}
	o, entries, err := before.Apply(move, t.actor, reason, t.now)
	if err != nil || len(entries) == 0 {
		return before, err
	}
	if o.ID == 0 {
		before.CreatedAt, before.UpdatedAt, before.By = t.now, t.now, t.actor
		if before, err = owners.create(t, before, string(before.State)); err != nil {
			return before, err
		}
		o.ID, o.CreatedAt, entries[0].Of = before.ID, before.CreatedAt, int64(before.ID)
	}
	if move != corral.OwnerEndDone { // the list of revocations has contained this state since the end was requested
		t.list(ownerWord+name, string(o.State))
	}
	if err := owners.save(t, o, entries...); err != nil {
		return o, err
	}
	if move == corral.OwnerEnd {
		_, err = t.RevokeTokens(name, "the account "+name+" is being ended")
	}
	if err == nil {
		err = t.wake(name)
	}
	return o, err
}

// wake notifies the loops that serve an owner's sites, clusters and ensembles.
func (t *Tx) wake(owner string) error {
	const each = `
		select 'site', id from sites where owner = ?1 and state <> 'DELETED'
		union all select 'cluster', id from clusters where owner = ?1 and state <> 'DELETED'
		union all select 'ensemble', id from ensembles where owner = ?1 and state in ('RUNNING', 'ENDING')`
	all, err := collect(t, each, []any{owner}, func(s *Subject) []any { return []any{&s.Object, &s.ID} })
	t.touch(all)
	return err
}

// RevokeTokens revokes all of an owner's tokens, including the tokens created with them, and returns how many were
// VALID.
func (t *Tx) RevokeTokens(owner, reason string) (n int, err error) {
	list, err := tokens.list(t, where("owner = ? and state = 'VALID'", owner))
	for _, k := range list {
		if err == nil {
			_, err = t.RevokeToken(k.ID, reason)
		}
	}
	return len(list), err
}

// Belongings holds an owner's objects that have not ended.
type Belongings struct {
	Scales    []corral.Scale
	Plans     []corral.Plan // PROVISIONED, without their documents
	Ensembles []record.Ensemble
	Runs      []corral.Run
	Glideins  []corral.Glidein // without their attempts
	Sites     []corral.Site
	Clusters  []corral.Cluster
}

// Belongings reads an owner's objects that have not ended, in any state: they must be removed before the account can
// end. Glideins are read without their attempts, which do not matter here.
func (t *Tx) Belongings(owner string) (b Belongings, err error) {
	of := func(state string) (c conditions) {
		c.add("owner = ? and "+state, owner)
		return c
	}
	var errs [7]error
	b.Scales, errs[0] = scales.list(t, of("true"))
	b.Plans, errs[1] = briefPlans("(null)").list(t, of("state = 'PROVISIONED'"))
	b.Ensembles, errs[2] = ensembles.list(t, of("state in ('RUNNING', 'ENDING')"))
	b.Runs, errs[3] = runs.list(t, of(liveRun))
	b.Glideins, errs[4] = glideins.list(t, of(liveGlidein))
	b.Sites, errs[5] = sites.list(t, of("state <> 'DELETED'"))
	b.Clusters, errs[6] = clusters.list(t, of("state <> 'DELETED'"))
	return b, errors.Join(errs[:]...)
}

// Nothing reports whether all the lists are empty.
func (b Belongings) Nothing() bool {
	return len(b.Scales)+len(b.Plans)+len(b.Ensembles)+len(b.Runs)+len(b.Glideins)+len(b.Sites)+len(b.Clusters) == 0
}
