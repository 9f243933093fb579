package reconcile

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/corral-pilot/corral"
)

// An index finds the objects of changes, and maintains counts. It is created by the first Apply, from a loaded world.
type index struct {
	owners map[corral.JobID]corral.GlideinID // :: attempt of a glidein of the world → that glidein
	load   corral.Load
	over   int       // number of the world's glideins that have ended; they leave when they are more than half of all
	held   time.Time // time for which Held is valid; zero: the attempts on which it is based have changed
}

// newIndex counts the contents of a loaded world. From then on each change updates the index, so that no change has to
// examine all glideins.
func newIndex(w World) *index {
	x := &index{owners: map[corral.JobID]corral.GlideinID{}}
	for i := range w.Glideins {
		g := &w.Glideins[i]
		for k := range g.Attempts {
			x.owners[g.Attempts[k].ID] = g.ID
			x.load = x.load.Add(&g.Attempts[k])
		}
	}
	return x
}

// tidy removes ended glideins from the world, many at a time, so that each removal costs O(1).
func (w *World) tidy() {
	if w.index.over > len(w.Glideins)/2 {
		w.Glideins = slices.DeleteFunc(w.Glideins, func(g corral.Glidein) bool { return g.State.Terminal() })
		w.index.over = 0
	}
}

// glidein finds a glidein that has not ended.
func (w *World) glidein(id corral.GlideinID) (*corral.Glidein, error) {
	i := sort.Search(len(w.Glideins), func(i int) bool { return w.Glideins[i].ID >= id })
	if i == len(w.Glideins) || w.Glideins[i].ID != id || w.Glideins[i].State.Terminal() {
		return nil, corral.NoSuch(corral.ObjectGlidein, id)
	}
	return &w.Glideins[i], nil
}

// job finds an attempt of a glidein, a setup or cleanup job, or an attempt that is kept as evidence.
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

// add adds a new job to its glidein or to the site's own jobs.
func (w *World) add(j corral.Job) {
	g, err := w.glidein(j.Glidein)
	if err != nil {
		w.Jobs = append(w.Jobs, j)
		return
	}
	g.Add(j)
	w.index.owners[j.ID] = g.ID
	w.index.load = w.index.load.Add(&j)
}

// A jobRule is one of the rules of corral.Job.
type jobRule func(corral.Job) (corral.Job, []corral.Entry, error)

// change replaces a job by the result of a rule, and returns it.
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
		w.index.load = w.index.load.Without(&before).Add(&j)
		w.remember(before, j)
	}
	return j, entries, nil
}

// kept is the maximum length of Told and Over. Far fewer attempts matter, unless a clock is set back.
const kept = 128

// remember keeps an ended attempt as evidence about the site (Told) and for the pace of submissions (Over), both in the
// order in which the store would read them. News about an attempt that had already ended replaces the kept version.
// Attempts that no longer matter are removed from the glidein, as the store does when it reads a glidein in brief.
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

// insert inserts a job at its position in a list that is sorted in this order; only the last jobs of the list are kept.
func insert(list []corral.Job, j corral.Job, compare func(a, b corral.Job) int) []corral.Job {
	i, _ := slices.BinarySearchFunc(list, j, compare)
	list = slices.Insert(list, i, j)
	return list[max(0, len(list)-kept):]
}
