package reconcile

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/corral-pilot/corral"
)

// An index finds what changes are about, and keeps what would have to be counted. It is made at the first Apply, from a
// world as it was loaded.
type index struct {
	owners map[corral.JobID]corral.GlideinID // :: attempt of a glidein of the world → that glidein
	load   corral.Load
	over   int       // how many of the world's glideins are over, and leave when they are half of all
	held   time.Time // Held is as of then; zero: what it follows from has changed
}

// newIndex counts what is in a world as it was loaded. From then on each change keeps the index right, so that no
// change looks at all glideins.
func newIndex(w World) *index {
	x := &index{owners: map[corral.JobID]corral.GlideinID{}}
	for _, g := range w.Glideins {
		for _, a := range g.Attempts {
			x.owners[a.ID] = g.ID
			x.load = x.load.Add(a)
		}
	}
	return x
}

// tidy lets glideins that are over leave, many at a time: each costs O(1) so.
func (w *World) tidy() {
	if w.index.over > len(w.Glideins)/2 {
		w.Glideins = slices.DeleteFunc(w.Glideins, func(g corral.Glidein) bool { return g.State.Terminal() })
		w.index.over = 0
	}
}

// glidein finds a glidein that is not over.
func (w *World) glidein(id corral.GlideinID) (*corral.Glidein, error) {
	i := sort.Search(len(w.Glideins), func(i int) bool { return w.Glideins[i].ID >= id })
	if i == len(w.Glideins) || w.Glideins[i].ID != id || w.Glideins[i].State.Terminal() {
		return nil, corral.NoSuch(corral.ObjectGlidein, id)
	}
	return &w.Glideins[i], nil
}

// job finds an attempt of a glidein, a setup or cleanup job, or an attempt that is remembered for what it told.
func (w *World) job(id corral.JobID) (*corral.Job, error) {
	list := w.Jobs
	if g, err := w.glidein(w.index.owners[id]); err == nil {
		list = g.Attempts
	}
	for _, list := range [][]corral.Job{list, w.Told} {
		for i := range list {
			if list[i].ID == id {
				return &list[i], nil
			}
		}
	}
	return nil, corral.NoSuch(corral.ObjectJob, id)
}

// add takes up a job that is new, with its glidein or among the site's own.
func (w *World) add(j corral.Job) {
	g, err := w.glidein(j.Glidein)
	if err != nil {
		w.Jobs = append(w.Jobs, j)
		return
	}
	g.Add(j)
	w.index.owners[j.ID] = g.ID
	w.index.load = w.index.load.Add(j)
}

// A jobRule is one of the rules of corral.Job.
type jobRule func(corral.Job) (corral.Job, []corral.Entry, error)

// change puts what a rule makes of a job in its place, and returns it.
func (w *World) change(id corral.JobID, rule jobRule) (corral.Job, []corral.Entry, error) {
	place, err := w.job(id)
	if err != nil {
		return corral.Job{}, nil, err
	}
	before := *place
	j, entries, err := rule(before)
	if err != nil || len(entries) == 0 {
		return before, nil, err
	}
	*place = j
	if j.Kind == corral.PilotJob {
		w.index.load = w.index.load.Without(before).Add(j)
		w.remember(before, j)
	}
	return j, entries, nil
}

// kept is how many attempts Told and Over have at most. Far fewer matter, but for a clock that is set back.
const kept = 128

// remember keeps an attempt that has ended for what it says of the site (Told) and of the pace of submissions (Over),
// both in the order in which the store would read them. News of an attempt that had ended before replaces what was kept
// of it. From its glidein it drops the attempts that matter no more, as the store does when it reads a glidein in
// brief.
func (w *World) remember(before, j corral.Job) {
	if j.Live() {
		return
	}
	if !before.Live() { // late news
		same := func(other corral.Job) bool { return other.ID == j.ID }
		w.Over, w.Told = slices.DeleteFunc(w.Over, same), slices.DeleteFunc(w.Told, same)
	}
	w.Over = insert(w.Over, j, func(a, b corral.Job) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	if w.index.held = (time.Time{}); j.Tells() {
		w.Told = insert(w.Told, j, func(a, b corral.Job) int {
			return cmp.Or(a.EndedAt.Compare(b.EndedAt), cmp.Compare(a.ID, b.ID))
		})
	}
	if g, err := w.glidein(j.Glidein); err == nil {
		all := g.Attempts
		*g = g.Brief()
		for _, a := range all {
			if !slices.ContainsFunc(g.Attempts, func(b corral.Job) bool { return b.ID == a.ID }) {
				delete(w.index.owners, a.ID)
			}
		}
	}
}

// insert puts a job where it belongs in a list that is in this order, of which the last ones are kept.
func insert(list []corral.Job, j corral.Job, compare func(a, b corral.Job) int) []corral.Job {
	i, _ := slices.BinarySearchFunc(list, j, compare)
	list = slices.Insert(list, i, j)
	return list[max(0, len(list)-kept):]
}
