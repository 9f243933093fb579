package events

import (
	"context"
	"encoding/json"
	"hash/maphash"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
)

// page is the number of history entries read at once.
const page = 1000

var seed = maphash.MakeSeed()

// A reader reads changes since its last read. It belongs to one goroutine.
type reader struct {
	db   *store.DB
	last int64                    // id of the last history entry that was read
	said map[store.Subject]uint64 // :: object → hash of the last event about it
}

// visible removes events that a caller may not see. All events of a batch have the same history id, so the remaining
// ones still record how far the client has read.
func visible(who access.Caller, batch []event) []event {
	var seen []event
	for _, e := range batch {
		if e.owner == "" || who.Sees(e.owner) {
			seen = append(seen, e)
		}
	}
	return seen
}

// span returns the ids of the first and last history entries.
func span(ctx context.Context, db *store.DB) (first, last int64, err error) {
	err = db.Whole().View(ctx, func(tx *store.WholeTx) error {
		first, last, err = tx.HistorySpan()
		return err
	})
	return first, last, err
}

// read returns an event for each changed object: those of the next history entries, and the named ones. Objects that
// are unchanged since their last event are left out. more reports whether there are more entries.
func (r *reader) read(ctx context.Context, named []store.Subject) (batch []event, more bool, err error) {
	last := r.last
	err = r.db.Whole().View(ctx, func(tx *store.WholeTx) error {
		entries, err := tx.HistoryAfter(last, page)
		if err != nil {
			return err
		}
		if n := len(entries); n > 0 {
			last, more = entries[n-1].ID, n == page
		}
		objects, err := objectsOf(tx, entries, named)
		if err == nil {
			batch, err = load(tx, objects, last)
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	r.last = last
	return r.news(batch), more, nil
}

// news removes objects that are unchanged since their last event. An entry may be about a job whose glidein is
// unchanged.
func (r *reader) news(batch []event) []event {
	var news []event
	for _, e := range batch {
		hash := maphash.Bytes(seed, e.Data)
		if of := e.subject(); r.said[of] != hash {
			r.said[of] = hash
			news = append(news, e)
		}
	}
	return news
}

func (e event) subject() store.Subject { return store.Subject{Object: e.Kind, ID: e.of} }

// objectsOf lists the sites, glideins and runs that are named or that history entries are about, each once. An entry
// about a job refers to its glidein or, without one, to its site.
func objectsOf(tx *store.WholeTx, entries []corral.Entry, named []store.Subject) (objects []store.Subject, err error) {
	known := map[store.Subject]bool{}
	add := func(s store.Subject) {
		if _, told := loaders[s.Object]; told && !known[s] {
			known[s] = true
			objects = append(objects, s)
		}
	}
	for _, e := range entries {
		s := store.Subject{Object: e.Object, ID: e.Of}
		if e.Object == corral.ObjectJob {
			job, err := tx.Job(corral.JobID(e.Of))
			if err != nil {
				return nil, err
			}
			s = store.Subject{Object: corral.ObjectGlidein, ID: int64(job.Glidein)}
			if job.Glidein == 0 {
				s = store.Subject{Object: corral.ObjectSite, ID: int64(job.Site)}
			}
		}
		add(s)
	}
	for _, s := range named {
		add(s)
	}
	return objects, nil
}

// loaders read objects of the kinds that have events, with their owners.
var loaders = map[string]func(tx *store.WholeTx, id int64) (object any, owner string, err error){
	corral.ObjectSite: func(tx *store.WholeTx, id int64) (any, string, error) {
		s, err := tx.Site(corral.SiteID(id))
		return s, s.Owner, err
	},
	corral.ObjectGlidein: func(tx *store.WholeTx, id int64) (any, string, error) {
		g, err := tx.Glidein(corral.GlideinID(id))
		return g, g.Owner, err
	},
	corral.ObjectRun: func(tx *store.WholeTx, id int64) (any, string, error) {
		r, err := tx.Run(corral.RunID(id))
		return r, r.Owner, err
	},
}

// load returns an event for each object.
func load(tx *store.WholeTx, objects []store.Subject, id int64) ([]event, error) {
	var all []event
	for _, s := range objects {
		object, owner, err := loaders[s.Object](tx, s.ID)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(object)
		if err != nil {
			return nil, err // unreachable: the nouns can be encoded as JSON
		}
		all = append(all, event{api.Event{ID: id, Kind: s.Object, Data: data}, owner, s.ID})
	}
	return all, nil
}
