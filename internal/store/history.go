package store

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// The history is append-only: it has an entry for each move of an object and for each other noteworthy event. Entries
// are ordered by id and carry the time and the actor of the transaction that wrote them.
var entries = table[corral.Entry]{
	noun: "history entry",
	name: "history",
	columns: func(e *corral.Entry) []column {
		return []column{
			{"id", orNull(&e.ID)},
			{"at_ms", at(&e.At)},
			{"actor", &e.Actor},
			{"object", &e.Object},
			{"object_id", &e.Of},
			{"event", &e.Event},
			{"from_state", &e.From},
			{"to_state", &e.To},
			{"reason", &e.Reason},
		}
	},
}

// History returns one object's entries, oldest first, and none for an object that does not exist. The page's After is
// the id of an entry.
func (t *Tx) History(object string, id int64, page Page) ([]corral.Entry, error) {
	c := where("object = ?", object)
	c.add("object_id = ?", id)
	c.page(page)
	return entries.list(t, c)
}

// HistoryAfter returns entries of all objects, oldest first: at most limit entries after the one with this id.
func (t *Tx) HistoryAfter(id int64, limit int) ([]corral.Entry, error) {
	var c conditions
	c.page(Page{After: id, Limit: limit})
	return entries.list(t, c)
}

// HistorySpan returns the ids of the first and last entries of all histories, or zeros if there are none.
func (t *Tx) HistorySpan() (first, last int64, err error) {
	err = t.row("select coalesce(min(id), 0), coalesce(max(id), 0) from history", nil, &first, &last)
	return first, last, wrap.Errorf(err, "reading the span of the history")
}

// Log writes an entry about an event that did not change the object's state. The event is a short phrase, always the
// same for the same kind of event.
func (t *Tx) Log(object string, id int64, event, reason string) error {
	state, err := t.stateOf(object, id)
	if err != nil {
		return err
	}
	return t.record(corral.Entry{Object: object, Of: id, Event: event, From: state, To: state, Reason: reason})
}

// stateful maps each kind of object that has a state, by its name in the history, to its table.
var stateful = map[string]struct{ name, owner string }{
	corral.ObjectSite:     {sites.name, sites.owner},
	corral.ObjectGlidein:  {glideins.name, glideins.owner},
	corral.ObjectJob:      {jobs.name, jobs.owner},
	corral.ObjectCluster:  {clusters.name, clusters.owner},
	corral.ObjectRun:      {runs.name, runs.owner},
	corral.ObjectPackage:  {catalog.name, catalog.owner},
	corral.ObjectMirror:   {mirrors.name, mirrors.owner},
	corral.ObjectPlan:     {plans.name, plans.owner},
	corral.ObjectProfile:  {profiles.name, profiles.owner},
	corral.ObjectToken:    {tokens.name, tokens.owner},
	corral.ObjectEnsemble: {ensembles.name, ensembles.owner},
	corral.ObjectOwner:    {owners.name, owners.owner},
}

// stateOf returns the state of an object of any kind.
func (t *Tx) stateOf(object string, id int64) (state string, err error) {
	table, known := stateful[object]
	if !known {
		return "", corral.Errorf(corral.Internal, "no object is called %q", object)
	}
	from, seen := t.seen(table.name, table.owner)
	err = t.row("select state from "+from+" where id = ?", append(seen, id), &state)
	if errors.Is(err, sql.ErrNoRows) {
		return "", corral.NoSuch(object, id)
	}
	return state, err
}

// record writes entries at the transaction's time, by its actor.
func (t *Tx) record(list ...corral.Entry) error {
	// The transaction's time and actor replace any that the rule has set.
	for _, e := range list {
		e.At, e.Actor = t.now, t.actor
		t.acted(e)
		if _, err := entries.insert(t, e); err != nil {
			return fmt.Errorf("recording %s of %s %d: %w", e.Event, e.Object, e.Of, err)
		}
	}
	return nil
}

// ForgetHistory removes the oldest entries of all histories, written before the given time: at most limit of them, so
// that other Writes do not wait long. It reports whether there may be more. Entries are numbered in the order of
// their times unless the clock was set back, so only the oldest ones are examined.
func (t *Tx) ForgetHistory(before time.Time, limit int) (more bool, err error) {
	res, err := t.exec(`
		delete from history
		where id in (
			select id
			from (select id, at_ms from history order by id limit ? + 0)
			where at_ms < ?)`, limit, at(&before))
	if err != nil {
		return false, fmt.Errorf("forgetting history: %w", err)
	}
	n, err := res.RowsAffected()
	return n == int64(limit), err
}
