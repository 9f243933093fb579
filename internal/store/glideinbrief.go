package store

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"

	"github.com/corral-pilot/corral"
)

// A glidein that is resubmitted forever accumulates attempts without limit, and it is settled whenever one of them
// changes. It is therefore read in brief: with the attempts that its next state depends on, and only a count of the
// others. Those are the live attempts and, going back from the last one, all attempts up to the first decisive one.

// decisive matches an attempt whose predecessors no longer affect the glidein's next state, except by the number of
// them that expired: see corral.Glidein.Next.
const decisive = "state = 'ENDED' and outcome not in ('lost', 'preempted', 'duplicate')" +
	" and not (outcome = 'failed' and transient and failure = '')"

// GlideinInBrief returns the glidein like Glidein, but only with the attempts that affect its next state.
func (t *Tx) GlideinInBrief(id corral.GlideinID) (corral.Glidein, error) {
	g, err := glideins.one(t, id, "id = ?", id)
	if err != nil {
		return corral.Glidein{}, err
	}
	c := where("id = ?", id)
	list := []corral.Glidein{g}
	err = t.addInBrief(list, c)
	return list[0], err
}

// addInBrief reads the attempts of list, which c selects: the live ones, the ended ones from the last decisive one
// on, and the number of the others that expired.
func (t *Tx) addInBrief(list []corral.Glidein, c conditions) error {
	ids := "select id from glideins" + c.clause()
	var live, tail conditions
	live.add(liveJob)
	live.add("site_id in (select site_id from glideins where id in ("+ids+"))", c.args...)
	live.add("+glidein_id in ("+ids+")", c.args...) // "+": the index on a glidein's attempts would visit all of them
	tail.add("state = 'ENDED'")
	// The cross join keeps SQLite from reordering the two tables: for each glidein, one lookup at the end of its
	// index finds the last decisive attempt, and a second one reads from there on.
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

// countExpired counts the expired attempts of list that were not read. The number matters only for glideins with
// resubmit mode "times", so other glideins are skipped. The query ids, with args, selects the list.
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
