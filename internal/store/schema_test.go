package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/plan/ensemble/record"
	"github.com/corral-pilot/corral/resubmit"
	"github.com/google/go-cmp/cmp"
)

// Extended result codes of SQLite.
const (
	brokenCheck      = 275
	brokenForeignKey = 787
	brokenNotNull    = 1299
	brokenUnique     = 2067
	brokenType       = 3091 // a STRICT table
)

func code(err error) int {
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return 0
}

// legal returns a database with one legal row of each kind, for statements that would make it illegal.
func legal(t *testing.T) (*sql.DB, *world) {
	w := newWorld(t)
	g := w.createGlidein(w.newGlidein())
	w.attempt(g, submitted, started, ended(corral.OutcomeExpired)) // job 1
	live := w.createGlidein(w.newGlidein())
	w.attempt(live, submitted, started) // job 2
	w.attempt(live)                     // job 3
	w.write(func(tx *store.Tx) error {
		if _, err := tx.CreateJob(corral.Job{Kind: corral.SetupJob, Site: w.site.ID, Tag: "setup"}); err != nil { // job 4
			return err
		}
		if _, err := tx.CreateSite(newSite("other")); err != nil { // site 2
			return err
		}
		if _, err := tx.CreateCluster(corral.Cluster{Name: "other", Owner: actor, Kind: corral.Condor}); err != nil {
			return err
		}
		if err := tx.NoteHosts(w.site.ID, map[string]time.Time{"n1.hpc": tx.Now()}); err != nil {
			return err
		}
		_, _, err := tx.Once(key("k", "a"), func() (store.Answer, error) { return store.Answer{Status: 200}, nil })
		return err
	})
	w.createPackage("1")
	w.createPackage("2")
	mirror := w.createMirror("one")
	w.createMirror("other")
	w.write(func(tx *store.Tx) error { _, err := tx.CheckMirror(mirror.ID, []corral.PackageID{1}, ""); return err })
	w.createRun(w.newRun("/runs/1"))
	over := w.createRun(w.newRun("/runs/2"))
	w.createProfile(actor, "seismic")
	w.createProfile(actor, "other")
	w.createPlan(w.newPlan())
	begun := w.createPlan(w.newPlan())
	w.write(func(tx *store.Tx) error { _, err := tx.MovePlan(begun.ID, corral.PlanProvision, ""); return err })
	w.write(w.reserve(begun.ID, w.site, 12_500_000))
	w.write(func(tx *store.Tx) error { _, err := tx.RevisePlan(begun.ID, revised()); return err })
	w.write(func(tx *store.Tx) error { _, err := tx.MoveRun(over.ID, corral.RunFail, ""); return err })
	w.write(func(tx *store.Tx) error {
		_, err := tx.CreateScale(corral.Scale{Cluster: 1, Owner: actor, SiteIDs: []corral.SiteID{w.site.ID}, Min: 1, Max: 8, CPUs: 2,
			Walltime: corral.Seconds(time.Hour), Idle: corral.Seconds(time.Minute)})
		return err
	})
	return raw(t, w.path), w
}

// Statements about the jobs and runs of legal.
const (
	job1 = "update jobs set %s where id = 1" // ENDED
	job2 = "update jobs set %s where id = 2" // RUNNING
	job3 = "update jobs set %s where id = 3" // NEW
	job4 = "update jobs set %s where id = 4" // a setup job
	run1 = "update runs set %s where id = 1" // RUNNING
	run2 = "update runs set %s where id = 2" // FAILED

	plan1 = "update plans set %s where id = 1" // READY
	plan2 = "update plans set %s where id = 2" // PROVISIONED
)

// illegal lists updates of the rows of legal; code 0 is any refusal.
var illegal = []struct {
	row  string
	set  []string
	code int
}{
	{"update sites set %s where id = 1", []string{
		"name = ''", "owner = ''", "contact = ''", "batch = ''", "state = 'BROKEN'", "state = ''", "root = 'relative'", "package = 'p'", "package_digest = 'sha256:00'",
		"updated_at_ms = created_at_ms - 1", "head_batch = ''", "site_options = '{}'", "facts = '[]'", "max_queued = -1", "max_running = -1",
		"allocation = 'much'", "login_needed = 1", "login_needed = 2", "trouble = 'far away'", "trouble_at_ms = 1"}, brokenCheck},
	{"update sites set %s where id = 1", []string{"name = 'other'"}, brokenUnique},
	{"update sites set %s where id = 1", []string{"name = null", "created_at_ms = null", "state = null", "owner = null"}, brokenNotNull},
	{"update sites set %s where id = 1", []string{"created_at_ms = 'yesterday'", "name = x'00'"}, brokenType},
	{"update sites set %s where id = 1", []string{"id = 77"}, brokenForeignKey},

	{"update nodes set %s", []string{"name = ''", "name = 'n1.hpc'"}, brokenCheck},
	{"update nodes set %s", []string{"site_id = 99"}, brokenForeignKey},
	{"update nodes set %s", []string{"cleared_at_ms = null"}, brokenNotNull},

	{"update scales set %s", []string{
		"owner = ''", "sites = '[]'", "sites = '{}'", "min_cpus = -1", "min_cpus = 9", "max_cpus = 0", "cpus = 0", "cpus = 9",
		"walltime_ms = 0", "idle_ms = 0", "updated_at_ms = created_at_ms - 1"}, brokenCheck},
	{"update scales set %s", []string{"id = 99"}, brokenForeignKey},

	{"update clusters set %s where id = 1", []string{
		"name = ''", "owner = ''", "kind = 'kubernetes'", "state = 'NEW'", "state = 'STARTING'", "attached = 1", "collector = 'h:1'", "version = '1'", "schedd_address = 'h:1'",
		"updated_at_ms = created_at_ms - 1"}, brokenCheck},
	{"update clusters set %s where id = 1", []string{"name = 'other'"}, brokenUnique},

	{"update glideins set %s where id = 1", []string{
		"owner = ''", "hosts = 0", "hosts = -1", "gpus = -1", "site_options = '1'", "cpus = 0", "memory_mib = -1", "walltime_ms = 0", "idle_ms = -1",
		"overlap_ms = -1", "queue_timeout_ms = 0", "broker = 'ssh'", "ccb = '{}'", "slots = 'many'", "retries = -1", "state = 'RUNNING'", "asked = 'please'",
		"resubmit_mode = ''", "resubmit_mode = 'times'", "resubmit_limit = 3", "resubmit_mode = 'until'",
		"resubmit_deadline_at_ms = 1", "labels = 'no json'", "labels = '[]'", "labels = 'null'",
		"state = 'DELETED'", "state = 'REMOVING'", "updated_at_ms = created_at_ms - 1"}, 0},
	{"update glideins set %s where id = 1", []string{"site_id = 99", "cluster_id = 99", "site_id = 2", "follows_id = 99"}, brokenForeignKey},

	{job1, []string{
		"outcome = null", "outcome = 'vanished'", "ended_at_ms = null", "state = 'RUNNING'", "state = 'NEW'", "state = 'LOST'",
		"ended_at_ms = started_at_ms - 1", "started_at_ms = submitted_at_ms - 1", "submitted_at_ms = created_at_ms - 1",
		"created_at_ms = submitted_at_ms + 1", "updated_at_ms = ended_at_ms - 1", "submitted_at_ms = null",
		"transient = 2", "failure = 'quota'", "transient = 1, failure = 'bad luck'"}, brokenCheck},
	{job2, []string{
		"started_at_ms = null", "submitted_at_ms = null", "outcome = 'idle'", "ended_at_ms = updated_at_ms",
		"state = 'ENDED'", "state = 'SUBMITTED'", "state = 'QUEUED'", "exit_status = 0", "transient = 1",
		"kind = 'setup'", "glidein_id = null", "number = 0", "tag = ''", "asked = 'please'", "workers = -1", "lost = '{}'",
		"token_digest = 'abc'", "package_digest = 'sha256:'", "token_digest = '" + strings.Repeat("0f", 32) + "'", "token_ends_at_ms = 1",
		"token_digest = '" + strings.Repeat("0G", 32) + "', token_ends_at_ms = 1"}, brokenCheck},
	{job2, []string{"tag = 'setup'", "number = 2"}, brokenUnique},
	{job2, []string{"site_id = 2", "glidein_id = 99"}, brokenForeignKey},
	{job3, []string{"state = 'SUBMITTED'", "submitted_at_ms = created_at_ms", "started_at_ms = created_at_ms"}, brokenCheck},
	{job4, []string{"kind = 'pilot'", "glidein_id = 1", "queue = 'long'", "lost = '[]'", "workers = 1", "lease_holder = 'me'", "session_digest = 'x'", "kind = 'party'",
		"token_digest = '" + strings.Repeat("0f", 32) + "', token_ends_at_ms = 1"}, brokenCheck},

	{run1, []string{
		"owner = ''", "workflow = ''", "dir = ''", "state = 'PAUSED'", "state = 'FAILED'", "ended_at_ms = updated_at_ms",
		"report = '{}'", "tasks_total = 1", "tasks_done = -1", "tasks_total = -1, tasks_done = -1",
		"options = '[]'", "labels = '7'", "updated_at_ms = created_at_ms - 1"}, 0},
	{run1, []string{"dir = '/runs/2'"}, brokenUnique},
	{run1, []string{"cluster_id = 99"}, brokenForeignKey},
	{run2, []string{"ended_at_ms = null", "ended_at_ms = created_at_ms - 1", "state = 'RUNNING'", "report = '[]'"}, brokenCheck},

	{plan1, []string{
		"owner = ''", "digest = 'sha256:00'", "document = '[]'", "state = 'MADE'", "state = 'PROVISIONED'",
		"updated_at_ms = created_at_ms - 1"}, brokenCheck},
	{plan1, []string{"document = 'no json'"}, 0},
	{plan1, []string{"cluster_id = 99"}, brokenForeignKey},
	{"update reservations set %s", []string{"amount = -1"}, brokenCheck},
	{"update reservations set %s", []string{"glidein_id = 99"}, brokenForeignKey},
	{"update reservations set %s", []string{"amount = null"}, brokenNotNull},
	{plan1, []string{"document = null", "digest = null", "workflow = null"}, brokenNotNull},
	{plan2, []string{"began_at_ms = null"}, brokenCheck},

	{"update profiles set %s where id = 1", []string{
		"name = ''", "owner = ''", "sources = '[]'", "sources = '{}'", "runs = -1", "kinds = 0", "tasks = 0",
		"digest = 'sha256:00'", "document = '[]'", "document = null", "state = 'NEW'", "state = 'DELETED'",
		"updated_at_ms = created_at_ms - 1"}, brokenCheck},
	{"update profiles set %s where id = 1", []string{"name = 'other'"}, brokenUnique},

	{"update packages set %s where id = 1", []string{
		"name = ''", "owner = ''", "what = ''", "version = ''", "os = ''", "arch = ''", "libc = ''", "key = ''", "signature = ''",
		"digest = 'sha256:00'", "digest = 'sha256:" + strings.Repeat("0G", 32) + "'", "digest = 'md5:000" + strings.Repeat("0", 64) + "'",
		"size_bytes = 0", "state = 'NEW'", "updated_at_ms = created_at_ms - 1"}, brokenCheck},
	{"update packages set %s where id = 1", []string{"digest = 'sha256:" + strings.Repeat("2", 64) + "'"}, brokenUnique},
	{"update mirrors set %s where id = 1", []string{
		"name = ''", "owner = ''", "url = ''", "state = 'NEW'", "successes = -1", "failures = -1", "bytes_per_s = -1",
		"successes = 1", "measured_at_ms = 1", "updated_at_ms = created_at_ms - 1"}, brokenCheck},
	{"update mirrors set %s where id = 1", []string{"name = 'other'", "url = 'file:///other'"}, brokenUnique},
	{"update replicas set %s", []string{"mirror_id = 99", "package_id = 99"}, brokenForeignKey},

	{"update history set %s where id = 1", []string{
		"actor = ''", "object = 'planet'", "object_id = 0", "event = ''", "to_state = ''"}, brokenCheck},
	{"update answers set %s", []string{"actor = ''", "key = ''", "request = 'short'", "status = 7"}, brokenCheck},
}

// Every statement would leave a row that the domain forbids.
func TestSchemaRefusesIllegalRows(t *testing.T) {
	t.Parallel()
	db, _ := legal(t)
	ctx := t.Context()
	for _, c := range illegal {
		for _, set := range c.set {
			statement := fmt.Sprintf(c.row, set)
			_, err := db.ExecContext(ctx, statement)
			if got := code(err); got == 0 || c.code != 0 && got != c.code {
				t.Errorf("%s: code %d, want %d (%v)", statement, got, c.code, err)
			}
		}
	}
	for _, insert := range []string{
		`insert into jobs (kind, site_id, number, tag, site_job_id, state, transient, reason, asked, workers, lease_holder,
			token_digest, created_at_ms, updated_at_ms)
		select kind, site_id, 2, 'second', site_job_id, state, transient, reason, asked, workers, lease_holder, token_digest,
			created_at_ms, updated_at_ms
		from jobs where id = 4`,
		"insert into answers (actor, key, request, status, body, at_ms) select actor, key, request, status, body, at_ms from answers",
	} {
		if _, err := db.ExecContext(ctx, insert); code(err) != brokenUnique && code(err) != 1555 {
			t.Errorf("%s: %v, want a refusal", insert, err)
		}
	}
}

// The schema's lists of values equal those of package corral.
func TestSchemaListsAreThoseOfTheDomain(t *testing.T) {
	t.Parallel()
	db, _ := legal(t)
	for _, c := range []struct {
		table, column string
		want          []string
	}{
		{"sites", "state", words(corral.SiteStates)},
		{"clusters", "state", words(corral.ClusterStates)},
		{"clusters", "kind", words([]corral.ClusterKind{corral.Embedded, corral.Condor})},
		{"glideins", "state", words(corral.GlideinStates)},
		{"glideins", "asked", words([]corral.Ask{corral.AskNothing, corral.AskDrain, corral.AskCancel})},
		{"glideins", "resubmit_mode", words([]resubmit.Mode{resubmit.Never, resubmit.Times, resubmit.Until, resubmit.Forever})},
		{"jobs", "state", words(corral.JobStates)},
		{"jobs", "outcome", words(corral.Outcomes)},
		{"jobs", "kind", words([]corral.JobKind{corral.SetupJob, corral.PilotJob, corral.CleanupJob})},
		{"jobs", "asked", words([]corral.Ask{corral.AskNothing, corral.AskDrain, corral.AskCancel})},
		{"runs", "state", words(corral.RunStates)},
		{"packages", "state", words(corral.PackageStates)},
		{"mirrors", "state", words(corral.MirrorStates)},
		{"plans", "state", words(corral.PlanStates)},
		{"profiles", "state", words(corral.ProfileStates)},
		{"ensembles", "state", words(record.States)},
		{"history", "object", []string{corral.ObjectSite, corral.ObjectGlidein, corral.ObjectJob, corral.ObjectCluster, corral.ObjectRun, corral.ObjectPackage, corral.ObjectMirror, corral.ObjectPlan, corral.ObjectProfile, corral.ObjectToken, corral.ObjectEnsemble, corral.ObjectOwner}},
		{"tokens", "state", words(corral.TokenStates)},
		{"tokens", "role", words(corral.Roles)},
		{"owners", "state", words(corral.OwnerStates)},
	} {
		if diff := cmp.Diff(c.want, listed(t, db, c.table, c.column)); diff != "" {
			t.Errorf("%s.%s: %s", c.table, c.column, diff)
		}
	}
}

func words[S ~string](list []S) []string {
	var w []string
	for _, s := range list {
		w = append(w, string(s))
	}
	return w
}

// listed returns the values that a column's check allows.
func listed(t *testing.T, db *sql.DB, table, column string) []string {
	t.Helper()
	var statement string
	err := db.QueryRow("select sql from sqlite_schema where name = ?", table).Scan(&statement)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`check \(\s*` + column + ` in \(([^)]*)\)`).FindStringSubmatch(statement)
	if found == nil {
		t.Fatalf("%s.%s has no check of a list", table, column)
	}
	var values []string
	for _, v := range strings.Split(found[1], ",") {
		values = append(values, strings.Trim(v, " \t\n'"))
	}
	return values
}

// A glidein is listed as live exactly if its state is not Terminal, a job if it is Live, and exactly the runs that
// are not Over need their cluster.
func TestLiveIsWhatTheDomainCallsLive(t *testing.T) {
	t.Parallel()
	db, w := legal(t)
	exec := func(statement string, args ...any) {
		if _, err := db.ExecContext(context.Background(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range corral.GlideinStates {
		exec("update glideins set asked = 'drain', state = ? where id = 1", s)
		w.view(func(tx *store.Tx) error {
			list, err := tx.Glideins(store.GlideinFilter{Live: true})
			got := slices.ContainsFunc(list, func(g corral.Glidein) bool { return g.ID == 1 })
			if got == s.Terminal() {
				t.Errorf("glidein %s: live = %v", s, got)
			}
			return err
		})
	}
	exec("update glideins set state = 'DELETED', asked = 'drain'")
	exec("delete from runs where id = 2")
	for _, s := range corral.RunStates {
		exec("update runs set state = ?1, ended_at_ms = iif(?2, updated_at_ms, null)", s, s.Over())
		err := storetest.All(w.db).Write(t.Context(), actor, func(tx *store.Tx) error {
			_, err := tx.RemoveCluster(w.cluster.ID, "")
			return errors.Join(err, errors.New("roll back"))
		})
		if needed := corral.KindOf(err) == corral.Conflict; needed == s.Over() {
			t.Errorf("run %s: cluster is needed = %v", s, needed)
		}
	}
}

// The lists that the engine reads at every step read live rows only, regardless of the number of old rows.
func TestLiveListsUseAnIndex(t *testing.T) {
	t.Parallel()
	db, _ := legal(t)
	for _, c := range []struct{ query, index string }{
		{"select * from glideins where state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING') and site_id = 1 and state <> 'DELETED' order by id", "glideins_live"},
		{"select * from glideins where state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING') and cluster_id = 1 and state <> 'DELETED' order by id", "glideins_cluster"},
		{"select * from jobs where state <> 'ENDED' and site_id = 1 order by id", "jobs_live"},
		{"select * from jobs where kind = 'pilot' and state = 'ENDED' and site_id = 1 order by ended_at_ms desc limit 8", "jobs_attempts_over"},
		{"select * from jobs where lost is not null and site_id = 1 and updated_at_ms >= 1 order by updated_at_ms desc limit 1000", "jobs_lost"},
		{"select * from jobs where kind = 'pilot' and state = 'ENDED' and site_id = 1 and ended_at_ms >= 1 order by id", "jobs_attempts_over"},
		{"select count(*) from jobs where site_id = 1 and kind = 'pilot' and state <> 'ENDED'", "jobs_live"},
		{"select * from jobs where jobs.kind = 'pilot' and submitted_at_ms is not null and jobs.site_id in (1) order by submitted_at_ms desc, jobs.id desc", "jobs_waits"},
		{"select * from jobs where glidein_id = 1 order by id", "jobs_attempt"},
		{"select * from jobs where site_id = 1 and kind = 'setup' and kind <> 'pilot' order by id", "jobs_number"},
		{"select * from pool_tokens join jobs on jobs.id = job_id where jobs.site_id = 1 and jobs.state <> 'ENDED' and jobs.state in ('SUBMITTED', 'QUEUED')", "jobs_live"},
		{"select site_id from jobs where state <> 'ENDED'", "jobs_live"},
		{"select * from jobs where tag = 'x'", "sqlite_autoindex_jobs"},
		{"select * from history where object = 'job' and object_id = 1 order by id", "history_object"},
		{"select * from plans where state = 'PROVISIONED' order by id", "plans_provisioned"},
		{"select * from jobs join glideins on glideins.id = glidein_id where jobs.site_id = 1 and kind = 'pilot' and started_at_ms is not null and summed = 0", "jobs_unsummed"},
		{"select * from jobs join glideins on glideins.id = glidein_id where jobs.site_id = 1 and kind = 'pilot' and started_at_ms is not null and summed = 1 and jobs.state = 'ENDED' and ended_at_ms > 1", "jobs_attempts_over"},
		{"select * from glideins where json_extract(labels, '$.plan') = '1' order by id", "glideins_plan"},
		{"select * from glideins where json_extract(labels, '$.plan') = '1' and state <> 'DELETED' order by id", "glideins_plan"},
		{"select * from runs where json_extract(labels, '$.plan') = '1' and state <> 'DELETED' order by id", "runs_plan"},
		{"select * from runs where workflow = 'w' and json_extract(report, '$.learned_memory') is not null and state <> 'DELETED' and owner = 'a' order by id desc limit 20 + 0", "runs_memory"},
		{"select glidein_id, started_at_ms, ended_at_ms, hosts, labels from jobs join glideins on glideins.id = glidein_id where jobs.site_id = 1 and jobs.kind = 'pilot' and started_at_ms is not null", "COVERING INDEX jobs_holdings"},
		{"select count(*) from sites where owner = 'a' and state <> 'DELETED'", "INDEX sites_name"},
		{"select count(*) from clusters where owner = 'a' and state <> 'DELETED'", "INDEX clusters_name"},
		{"select count(*) from glideins indexed by glideins_open where owner = 'a' and state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING')", "COVERING INDEX glideins_open"},
		{"select count(*) from runs indexed by runs_kept where owner = 'a' and state <> 'DELETED'", "COVERING INDEX runs_kept"},
		{"select count(*) from runs indexed by runs_kept where owner = 'a' and state in ('RUNNING', 'CANCELLING') and state <> 'DELETED'", "COVERING INDEX runs_kept"},
		{"select count(*) from plans where owner = 'a' and state <> 'DELETED'", "COVERING INDEX plans_kept"},
		{"select count(*) from profiles where owner = 'a' and state <> 'DELETED'", "INDEX profiles_name"},
		{"select count(*) from ensembles where owner = 'a' and state <> 'DELETED'", "COVERING INDEX ensembles_kept"},
		{"select count(*) from tokens where owner = 'a' and state <> 'REVOKED' and (expires_at_ms is null or expires_at_ms > 1)", "INDEX tokens_name"},
		{"select id, amount from glideins join reservations on glidein_id = id where site_id = 1 and state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING')", "glideins_live"},
	} {
		var id, parent, unused int
		var detail string
		if err := db.QueryRow("explain query plan "+c.query).Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(detail, c.index) {
			t.Errorf("%s: %s, want index %s", c.query, detail, c.index)
		}
	}
}
