package store

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
)

// The history is append-only: an entry for each move of an object and for each thing worth telling that is no move.
// Entries have an order of their own, by id, and the time and the actor of the transaction that wrote them.
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

// History returns the entries of one object, oldest first; none for an object that does not exist.
// The page's After is the id of an entry.
func (t *Tx) History(object string, id int64, page Page) ([]corral.Entry, error) {
	var c conditions
	c.add("object = ?", object)
	c.add("object_id = ?", id)
	c.page(page)
	return entries.list(t, c)
}

// HistoryAfter returns entries of all objects, oldest first: those after the one with this id, at most limit of them.
func (t *Tx) HistoryAfter(id int64, limit int) ([]corral.Entry, error) {
	var c conditions
	c.page(Page{After: id, Limit: limit})
	return entries.list(t, c)
}

// HistorySpan returns the ids of the first and of the last entry of all; zeros if there is none.
func (t *Tx) HistorySpan() (first, last int64, err error) {
	err = t.row("select coalesce(min(id), 0), coalesce(max(id), 0) from history", nil, &first, &last)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the span of the history: %w", err)
	}
	return first, last, nil
}

// Log writes an entry about something that did not change the object's state. The event is a short
// phrase, the same for the same kind of thing.
func (t *Tx) Log(object string, id int64, event, reason string) error {
	state, err := t.stateOf(object, id)
	if err != nil {
		return err
	}
	return t.record(corral.Entry{Object: object, Of: id, Event: event, From: state, To: state, Reason: reason})
}

// stateful has the tables of the objects that have a state, by what history calls them.
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
	// Whatever the rule has set: all entries of a transaction have its time and its actor.
	for _, e := range list {
		e.At, e.Actor = t.now, t.actor
		t.acted(e)
		if _, err := entries.insert(t, e); err != nil {
			return fmt.Errorf("recording %s of %s %d: %w", e.Event, e.Object, e.Of, err)
		}
	}
	return nil
}

// ForgetHistory removes entries of all histories that were written before then, the oldest first: at most limit of
// them, so that other Writes need not wait for long. It returns whether there may be more. Entries have their numbers
// in the order of their times, as far as the clock was not set back, so only the oldest ones are looked at.
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
