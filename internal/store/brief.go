package store

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"

	"github.com/corral-pilot/corral"
)

// A glidein that is resubmitted forever has attempts without end, and it is settled whenever one of them changes. So it
// is read in brief: with the attempts that its next state depends on, and of the others only a number. These are the
// attempts that are alive and, going back from the last one, those up to the first that is decisive.

// decisive is true of an attempt before which others matter no more for what follows, but for how many of them
// expired: see corral.Glidein.Next.
const decisive = "state = 'ENDED' and outcome not in ('lost', 'preempted', 'duplicate')" +
	" and not (outcome = 'failed' and transient and failure = '')"

// GlideinInBrief returns the glidein as Glidein does, but of its attempts only those that matter for what follows.
func (t *Tx) GlideinInBrief(id corral.GlideinID) (corral.Glidein, error) {
	g, err := glideins.one(t, id, "id = ?", id)
	if err != nil {
		return corral.Glidein{}, err
	}
	var c conditions
	c.add("id = ?", id)
	list := []corral.Glidein{g}
	err = t.addInBrief(list, c)
	return list[0], err
}

// addInBrief reads, for list, which is what c selects, the attempts that are alive, those that have ended from the last
// decisive one on, and how many of the others expired.
func (t *Tx) addInBrief(list []corral.Glidein, c conditions) error {
	ids := "select id from glideins" + c.clause()
	var live, tail conditions
	live.add(liveJob)
	live.add("site_id in (select site_id from glideins where id in ("+ids+"))", c.args...)
	live.add("+glidein_id in ("+ids+")", c.args...) // "+": the index of a glidein's attempts leads to all of them
	tail.add("state = 'ENDED'")
	// The cross join keeps SQLite from reordering the two: for each glidein one look at the end of its index finds the
	// last decisive attempt, and a second one reads from there on.
	tail.add(`id in (
		select jobs.id
		from (`+ids+`) as g
		cross join jobs on glidein_id = g.id and number >= coalesce((
			select number
			from jobs
			where glidein_id = g.id and `+decisive+`
			order by number desc
			limit 1), 0))`, c.args...)
	var attempts []corral.Job
	for _, c := range []conditions{live, tail} {
		some, err := jobs.list(t, c)
		if err != nil {
			return err
		}
		attempts = append(attempts, some...)
	}
	slices.SortFunc(attempts, func(a, b corral.Job) int { return cmp.Compare(a.ID, b.ID) })
	give(list, attempts)
	return t.countExpired(list, ids, c.args)
}

// countExpired counts the attempts of list that expired and were not read. The number matters only to glideins that are
// resubmitted so many times, so others are not counted. The query ids, with args, selects the list.
func (t *Tx) countExpired(list []corral.Glidein, ids string, args []any) error {
	all := map[corral.GlideinID]int{}
	err := t.rows(`
		select glidein_id, count(*)
		from jobs
		where
			outcome = 'expired'
			and glidein_id in (select id from glideins where id in (`+ids+`) and resubmit_mode = 'times')
		group by glidein_id`, args, func(rows *sql.Rows) error {
		var id corral.GlideinID
		var n int
		err := rows.Scan(&id, &n)
		all[id] = n
		return err
	})
	if err != nil {
		return fmt.Errorf("counting attempts that expired: %w", err)
	}
	for i := range list {
		g := &list[i]
		if n := all[g.ID]; n > 0 {
			read := 0
			for _, a := range g.Attempts {
				if a.Outcome == corral.OutcomeExpired {
					read++
				}
			}
			g.EarlierExpired = n - read
		}
	}
	return nil
}
