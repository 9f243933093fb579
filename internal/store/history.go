package store

import (
	"fmt"

	"github.com/corral-pilot/corral"
)

var entries = table[corral.Entry]{
	noun: "history entry",
	name: "history",
	columns: `
	id,
	at_ms,
	actor,
	object,
	object_id,
	event,
	from_state,
	to_state,
	reason`,
	fields: func(e *corral.Entry) []any {
		return []any{
			orNull(&e.ID),
			at(&e.At),
			&e.Actor,
			&e.Object,
			&e.Of,
			&e.Event,
			&e.From,
			&e.To,
			&e.Reason,
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

// Log writes an entry about something that did not change the object's state. The event is a short
// phrase, the same for the same kind of thing.
func (t *Tx) Log(object string, id int64, event, reason string) error {
	state, err := t.stateOf(object, id)
	if err != nil {
		return err
	}
	return t.record(corral.Entry{Object: object, Of: id, Event: event, From: state, To: state, Reason: reason})
}

func (t *Tx) stateOf(object string, id int64) (string, error) {
	switch object {
	case corral.ObjectSite:
		s, err := t.Site(corral.SiteID(id))
		return string(s.State), err
	case corral.ObjectGlidein:
		g, err := glideins.one(t, id, "id = ?", id)
		return string(g.State), err
	case corral.ObjectJob:
		j, err := t.Job(corral.JobID(id))
		return string(j.State), err
	case corral.ObjectCluster:
		c, err := t.Cluster(corral.ClusterID(id))
		return string(c.State), err
	case corral.ObjectRun:
		r, err := t.Run(corral.RunID(id))
		return string(r.State), err
	case corral.ObjectPackage:
		p, err := t.Package(corral.PackageID(id))
		return string(p.State), err
	case corral.ObjectMirror:
		m, err := t.Mirror(corral.MirrorID(id))
		return string(m.State), err
	}
	return "", corral.Errorf(corral.Internal, "no object is called %q", object)
}

// record writes entries at the transaction's time, by its actor.
func (t *Tx) record(list ...corral.Entry) error {
	for _, e := range list {
		e.At, e.Actor = t.now, t.actor
		if _, err := entries.insert(t, e); err != nil {
			return fmt.Errorf("recording %s of %s %d: %w", e.Event, e.Object, e.Of, err)
		}
	}
	return nil
}
