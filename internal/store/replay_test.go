package store_test

import (
	"database/sql"
	"testing"
)

// checkHistory checks that each object's history, from its creation on, leads without gaps to the object's state.
func checkHistory(t *testing.T, db *sql.DB) {
	t.Helper()
	gaps := column(t, db, `
		select object || ' ' || object_id || ': ' || event || ' from ' || from_state || ' after ' || before
		from (
			select
				object,
				object_id,
				event,
				from_state,
				lag(to_state, 1, '') over (partition by object, object_id order by id) as before
			from history)
		where from_state <> before`)
	strays := column(t, db, `
		with states as (
			select 'site' as object, id, state from sites
			union all select 'glidein', id, state from glideins
			union all select 'job', id, state from jobs
			union all select 'cluster', id, state from clusters
			union all select 'run', id, state from runs)
		select object || ' ' || id || ' is ' || state || ', its history says ' || coalesce(last, 'nothing')
		from (
			select
				object,
				id,
				state,
				(select to_state from history where object = states.object and object_id = states.id order by history.id desc limit 1) as last
			from states)
		where last is not state`)
	for _, line := range append(gaps, strays...) {
		t.Errorf("history: %s", line)
	}
}
