package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	f := start(t)
	if h, err := f.Health(t.Context()); err != nil || h != (api.Health{Status: "ok", Version: "test", User: "nobody"}) {
		t.Errorf("Health() = %v, %v", h, err)
	}
	if status, _, _ := f.send(t, "GET", "/healthz", ""); status != 200 {
		t.Errorf("/healthz answered %d", status)
	}
	f.server.Stop()
	if status, p, _ := f.send(t, "GET", "/readyz", ""); status != 503 || p.Kind != corral.Unavailable {
		t.Errorf("/readyz of a server that stops answered %d %+v", status, p)
	}
}

func TestSiteIsCreated(t *testing.T) {
	t.Parallel()
	f := start(t)
	got := must(f.CreateSite(t.Context(), api.NewSite{Name: "a.b-1", Contact: "local:", Batch: "fork"}, ""))(t)
	want := corral.Site{ID: 1, Name: "a.b-1", Owner: "local", Contact: "local:", Batch: "fork", HeadBatch: "fork", Root: "/srv/sites/a.b-1",
		State: corral.SiteNew, CreatedAt: got.CreatedAt, UpdatedAt: got.CreatedAt}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("site (-want +got):\n%s", diff)
	}
	for _, ref := range []string{"a.b-1", "1"} {
		if site := must(f.Site(t.Context(), ref))(t); site.ID != 1 {
			t.Errorf("Site(%q) = %+v", ref, site)
		}
	}
	entries := must(f.SiteHistory(t.Context(), "a.b-1"))(t)
	if len(entries) != 1 || entries[0].Actor != "local" || entries[0].To != "NEW" {
		t.Errorf("history %+v, want its creation by local", entries)
	}
}

func TestBadSites(t *testing.T) {
	t.Parallel()
	f := start(t)
	good := api.NewSite{Name: "a", Contact: "local:", Batch: "fork", Root: "/srv/x/a"}
	must(f.CreateSite(t.Context(), good, ""))(t)
	for _, tc := range []struct {
		name  string
		edit  func(*api.NewSite)
		kind  corral.Kind
		place string
	}{
		{"no name", func(s *api.NewSite) { s.Name = "" }, corral.Invalid, "name"},
		{"capitals", func(s *api.NewSite) { s.Name = "A" }, corral.Invalid, "name"},
		{"path", func(s *api.NewSite) { s.Name = "../a" }, corral.Invalid, "name"},
		{"a line more", func(s *api.NewSite) { s.Name = "a\n" }, corral.Invalid, "name"},
		{"number", func(s *api.NewSite) { s.Name = "17" }, corral.Invalid, "name"},
		{"too long", func(s *api.NewSite) { s.Name = strings.Repeat("a", 64) }, corral.Invalid, "name"},
		{"contact", func(s *api.NewSite) { s.Contact = "gopher://host" }, corral.Invalid, "contact"},
		{"contact with a path", func(s *api.NewSite) { s.Contact = "ssh://host/home" }, corral.Invalid, "contact"},
		{"contact with a password", func(s *api.NewSite) { s.Contact = "ssh://ann:secret@host" }, corral.Invalid, "contact"},
		{"batch", func(s *api.NewSite) { s.Batch = "punchcards" }, corral.Invalid, "batch"},
		{"head batch", func(s *api.NewSite) { s.HeadBatch = "punchcards" }, corral.Invalid, "head_batch"},
		{"limit", func(s *api.NewSite) { s.MaxQueued = -1 }, corral.Invalid, "max_queued"},
		{"queue of fork", func(s *api.NewSite) { s.Queue = "long" }, corral.Unsatisfiable, "queue"},
		{"queue of two lines", func(s *api.NewSite) { s.Queue = "a\nb" }, corral.Invalid, "queue"},
		{"variable here", func(s *api.NewSite) { s.Root = "$HOME/x" }, corral.Invalid, "root"},
		{"variable in the middle", func(s *api.NewSite) { s.Contact, s.Root = "ssh://host", "/x/$HOME\n" }, corral.Invalid, "root"},
		{"command", func(s *api.NewSite) { s.Contact, s.Root = "ssh://host", "$(id)/x" }, corral.Invalid, "root"},
		{"relative root", func(s *api.NewSite) { s.Root = "x" }, corral.Invalid, "root"},
		{"all there is", func(s *api.NewSite) { s.Root = "/x/.." }, corral.Invalid, "root"},
		{"root of two lines", func(s *api.NewSite) { s.Root = "/srv/x\n/b" }, corral.Invalid, "root"},
		{"root of another", func(s *api.NewSite) { s.Root = "/srv/x/a/" }, corral.Conflict, "root"},
		{"root in another", func(s *api.NewSite) { s.Root = "/srv/x/a/b" }, corral.Conflict, "root"},
		{"root around another", func(s *api.NewSite) { s.Root = "/srv" }, corral.Conflict, "root"},
		{"name of another", func(s *api.NewSite) { s.Name = "a" }, corral.Conflict, "name"},
	} {
		in := good
		in.Name, in.Root = "b", "/srv/x/b"
		tc.edit(&in)
		_, err := f.CreateSite(t.Context(), in, "")
		wantKind(t, tc.name, err, tc.kind, tc.place)
	}
	f.bad = &gridsite.Refused{Text: "it is not writable"}
	good.Name, good.Root = "b", "/srv/x/b"
	_, err := f.CreateSite(t.Context(), good, "")
	wantKind(t, "not writable", err, corral.Invalid, "root")
	if sites := must(f.Sites(t.Context(), api.Filter{All: true}))(t); len(sites) != 1 {
		t.Errorf("%d sites, want 1", len(sites))
	}
}

func TestSiteRemoval(t *testing.T) {
	t.Parallel()
	f := start(t)
	site := f.readySite(t)
	g := f.glidein(t)
	for range 2 { // a repetition is harmless
		if got := must(f.RemoveSite(t.Context(), "local", false))(t); got.State != corral.SiteExiting {
			t.Errorf("site is %s, want EXITING", got.State)
		}
	}
	_, err := f.CreateGlidein(t.Context(), small(), "")
	wantKind(t, "glidein on a site that goes", err, corral.Conflict, "site")
	if got := must(f.RemoveSite(t.Context(), "local", true))(t); got.State != corral.SiteDeleted {
		t.Errorf("site is %s, want DELETED", got.State)
	}
	if got := must(f.Glidein(t.Context(), g.ID))(t); !got.State.Terminal() {
		t.Errorf("glidein is %s after its site", got.State)
	}
	if got := must(f.Sites(t.Context(), api.Filter{}))(t); len(got) != 0 {
		t.Errorf("sites %v are listed", got)
	}
	if got := must(f.Sites(t.Context(), api.Filter{All: true}))(t); len(got) != 1 || got[0].ID != site.ID {
		t.Errorf("sites with all: %v", got)
	}
	_, err = f.RemoveSite(t.Context(), "local", true)
	wantKind(t, "removed by a name that is free again", err, corral.NotFound, "site")
	if got := must(f.RemoveSite(t.Context(), "1", true))(t); got.State != corral.SiteDeleted {
		t.Errorf("removed again: %+v", got)
	}
}

func TestForcedRemovalAsksGlideinsToGo(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	g := f.glidein(t)
	f.attempt(t, g, "a")
	must(f.RemoveSite(t.Context(), "local", true))(t)
	if got := must(f.Glidein(t.Context(), g.ID))(t); got.Asked != corral.AskCancel || got.State != corral.GlideinRemoving {
		t.Errorf("glidein %+v, want asked to cancel", got)
	}
}

func TestGlideinIsCreated(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	in := small()
	in.Resubmit, in.Retries, in.Labels = "2", 3, map[string]string{"a": "1"}
	in.Idle = corral.Seconds(5 * time.Second)
	in.NotBefore = time.Now().Add(time.Hour).In(time.FixedZone("", 3600))
	got := must(f.CreateGlidein(t.Context(), in, ""))(t)
	want := corral.Glidein{
		ID: 1, Owner: "local", Site: 1, SiteName: "local", Cluster: 1, ClusterName: "default",
		Shape: corral.Shape{Hosts: 2, CPUs: 1, MemoryMiB: machine.MemoryMiB / machine.CPUs, Walltime: in.Walltime},
		Idle:  in.Idle, QueueLimit: corral.DefaultQueueTimeout, NotBefore: in.NotBefore.UTC().Truncate(time.Millisecond),
		Resubmit: resubmit.Policy{Mode: resubmit.Times, Limit: 2, Retries: 3},
		Labels:   in.Labels,
		State:    corral.GlideinWaiting, Reason: "not before " + in.NotBefore.UTC().Format(time.RFC3339),
		CreatedAt: got.CreatedAt, UpdatedAt: got.CreatedAt,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("glidein (-want +got):\n%s", diff)
	}
	want.Outlook = &corral.Outlook{Next: corral.NextSubmit, Attempt: 1, At: want.NotBefore, Why: "first attempt; " + want.Reason}
	if got := must(f.Glidein(t.Context(), 1))(t); !cmp.Equal(got, want) {
		t.Errorf("read back (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// All hosts of the batch system fork are this one machine: together they never request more memory than it has.
func TestMemoryOfHostsSumsToTheMachine(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	n := machine.CPUs
	for _, tt := range []struct{ hosts, cpus, want int }{
		{1, 1, machine.MemoryMiB / n}, {n, 1, machine.MemoryMiB / n}, {1, n, machine.MemoryMiB},
		{2 * n, 1, machine.MemoryMiB / (2 * n)}, {3, n / 2, machine.MemoryMiB / 3},
	} {
		in := small()
		in.Hosts, in.CPUs = tt.hosts, tt.cpus
		got := must(f.CreateGlidein(t.Context(), in, ""))(t)
		if got.MemoryMiB != tt.want {
			t.Errorf("%d hosts of %d cpus have %d MiB each, want %d", tt.hosts, tt.cpus, got.MemoryMiB, tt.want)
		}
	}
}

func TestBadGlideins(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	const day = corral.Seconds(24 * time.Hour)
	for _, tc := range []struct {
		name  string
		edit  func(*api.NewGlidein)
		kind  corral.Kind
		place string
	}{
		{"no site", func(g *api.NewGlidein) { g.Site = "" }, corral.Invalid, "site"},
		{"unknown site", func(g *api.NewGlidein) { g.Site = "nowhere" }, corral.NotFound, "site"},
		{"unknown cluster", func(g *api.NewGlidein) { g.Cluster = "nowhere" }, corral.NotFound, "cluster"},
		{"no hosts", func(g *api.NewGlidein) { g.Hosts = 0 }, corral.Invalid, "hosts"},
		{"too many hosts", func(g *api.NewGlidein) { g.Hosts = 10_001 }, corral.Invalid, "hosts"},
		{"no cpus", func(g *api.NewGlidein) { g.CPUs = 0 }, corral.Invalid, "cpus"},
		{"more cpus than the machine", func(g *api.NewGlidein) { g.CPUs = machine.CPUs + 1 }, corral.Unsatisfiable, "cpus"},
		{"negative memory", func(g *api.NewGlidein) { g.MemoryMiB = -1 }, corral.Invalid, "memory_mib"},
		{"more memory than the machine", func(g *api.NewGlidein) { g.MemoryMiB = machine.MemoryMiB/2 + 1 }, corral.Unsatisfiable, "memory_mib"},
		{"short walltime", func(g *api.NewGlidein) { g.Walltime = corral.Seconds(9 * time.Second) }, corral.Invalid, "walltime_s"},
		{"long walltime", func(g *api.NewGlidein) { g.Walltime = 367 * day }, corral.Invalid, "walltime_s"},
		{"negative idle", func(g *api.NewGlidein) { g.Idle = -day }, corral.Invalid, "idle_s"},
		{"negative stay", func(g *api.NewGlidein) { g.Idle, g.MinStay = day, -day }, corral.Invalid, "min_stay_s"},
		{"a stay, but never idle", func(g *api.NewGlidein) { g.MinStay = day }, corral.Invalid, "min_stay_s"},
		{"overlap of all", func(g *api.NewGlidein) { g.Overlap = g.Walltime }, corral.Invalid, "overlap_s"},
		{"far ahead", func(g *api.NewGlidein) { g.NotBefore = time.Now().AddDate(2, 0, 0) }, corral.Invalid, "not_before"},
		{"resubmit", func(g *api.NewGlidein) { g.Resubmit = "sometimes" }, corral.Invalid, "resubmit"},
		{"resubmit until yesterday", func(g *api.NewGlidein) { g.Resubmit = "until=2026-01-01T00:00:00Z" }, corral.Invalid, "resubmit"},
		{"retries", func(g *api.NewGlidein) { g.Retries = -1 }, corral.Invalid, "retries"},
		{"label", func(g *api.NewGlidein) { g.Labels = map[string]string{"a b": ""} }, corral.Invalid, "labels"},
		{"label's value", func(g *api.NewGlidein) { g.Labels = map[string]string{"a": "\x00"} }, corral.Invalid, "labels.a"},
		{"a plan's label", func(g *api.NewGlidein) { g.Labels = map[string]string{"plan": "7"} }, corral.Invalid, "labels.plan"},
		{"a pilot's label", func(g *api.NewGlidein) { g.Labels = map[string]string{"pilot": "0"} }, corral.Invalid, "labels.pilot"},
		{"a scale's label", func(g *api.NewGlidein) { g.Labels = map[string]string{"scale": "1"} }, corral.Invalid, "labels.scale"},
		{"queue", func(g *api.NewGlidein) { g.Queue = "long" }, corral.Unsatisfiable, "queue"},
		{"account", func(g *api.NewGlidein) { g.Account = "x" }, corral.Unsatisfiable, "account"},
		{"gpus", func(g *api.NewGlidein) { g.GPUs = 1 }, corral.Unsatisfiable, "gpus"},
		{"site options", func(g *api.NewGlidein) { g.SiteOptions = []string{"-x"} }, corral.Unsatisfiable, "site_options"},
		{"broker ccb", func(g *api.NewGlidein) { g.Broker = "ccb" }, corral.Unsatisfiable, "broker"},
		{"broker", func(g *api.NewGlidein) { g.Broker = "mail" }, corral.Invalid, "broker"},
		{"brokers", func(g *api.NewGlidein) { g.CCB = []string{"a:1"} }, corral.Unsatisfiable, "ccb"},
		{"slots", func(g *api.NewGlidein) { g.Slots = corral.SlotsStatic }, corral.Unsatisfiable, "slots"},
		{"queue timeout", func(g *api.NewGlidein) { g.QueueLimit = -day }, corral.Invalid, "queue_timeout_s"},
		{"queue timeout of years", func(g *api.NewGlidein) { g.QueueLimit = 367 * day }, corral.Invalid, "queue_timeout_s"},
	} {
		in := small()
		tc.edit(&in)
		_, err := f.CreateGlidein(t.Context(), in, "")
		wantKind(t, tc.name, err, tc.kind, tc.place)
	}
	if list := must(f.Glideins(t.Context(), api.Filter{All: true}))(t); len(list) != 0 {
		t.Errorf("glideins %v were created", list)
	}
}

func TestGlideinFilter(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	must(f.CreateCluster(t.Context(), api.NewCluster{Name: "other", Kind: corral.Embedded}, ""))(t)
	for _, in := range []struct{ cluster, label string }{{"", "x"}, {"other", "x"}, {"other", "y"}, {"2", "z"}} {
		g := small()
		g.Cluster, g.Labels = in.cluster, map[string]string{"l": in.label, "all": ""}
		must(f.CreateGlidein(t.Context(), g, ""))(t)
	}
	must(f.RemoveGlidein(t.Context(), 4, true))(t)
	for _, tc := range []struct {
		filter api.Filter
		want   []corral.GlideinID
	}{
		{api.Filter{}, []corral.GlideinID{1, 2, 3}},
		{api.Filter{All: true}, []corral.GlideinID{1, 2, 3, 4}},
		{api.Filter{Cluster: "other"}, []corral.GlideinID{2, 3}},
		{api.Filter{Cluster: "2", Labels: map[string]string{"l": "x"}}, []corral.GlideinID{2}},
		{api.Filter{Site: "local", Labels: map[string]string{"l": "x", "all": ""}}, []corral.GlideinID{1, 2}},
		{api.Filter{Labels: map[string]string{"l": "none"}}, nil},
	} {
		var got []corral.GlideinID
		for _, g := range must(f.Glideins(t.Context(), tc.filter))(t) {
			got = append(got, g.ID)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("Glideins(%+v) (-want +got):\n%s", tc.filter, diff)
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	for range 3 {
		f.glidein(t)
	}
	for target, want := range map[string]string{
		"/v1/glideins?limit=2":                    `"next":"2"`,
		"/v1/glideins/1/history?limit=1":          `"next":"`,
		"/v1/clusters?limit=1&after=1":            `{"items":[]}`,
		"/v1/glideins?limit=2&after=2&site=local": `"id":3`,
	} {
		if _, _, body := f.send(t, "GET", target, ""); !strings.Contains(body, want) {
			t.Errorf("%s: %s, want %s in it", target, body, want)
		}
	}
	if _, _, body := f.send(t, "GET", "/v1/glideins?limit=3", ""); strings.Contains(body, "next") {
		t.Errorf("a page that is the last has a next: %s", body)
	}
}

func TestGlideinRemoval(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	idle, busy := f.glidein(t), f.glidein(t)
	f.attempt(t, busy, "a")
	if got := must(f.RemoveGlidein(t.Context(), idle.ID, false))(t); got.State != corral.GlideinDeleted {
		t.Errorf("glidein without attempt is %s, want DELETED", got.State)
	}
	if got := must(f.RemoveGlidein(t.Context(), busy.ID, false))(t); got.State != corral.GlideinRemoving || got.Asked != corral.AskDrain {
		t.Errorf("glidein is %s, asked %q, want REMOVING, drain", got.State, got.Asked)
	}
	if got := must(f.RemoveGlidein(t.Context(), busy.ID, true))(t); got.Asked != corral.AskCancel {
		t.Errorf("asked %q, want cancel", got.Asked)
	}
	if got := must(f.RemoveGlidein(t.Context(), busy.ID, false))(t); got.Asked != corral.AskCancel {
		t.Errorf("asked %q, want cancel still", got.Asked)
	}
}

func TestHistoryAndTimeline(t *testing.T) {
	t.Parallel()
	f := start(t)
	site := f.readySite(t)
	f.write(t, func(tx *store.Tx) error {
		setup, err := tx.CreateJob(corral.Job{Kind: corral.SetupJob, Site: site.ID, Tag: "s"})
		if err != nil {
			return err
		}
		_, err = tx.MoveJob(setup.ID, corral.JobEvent{Move: corral.JobSubmit})
		return err
	})
	g := f.glidein(t)
	job := f.attempt(t, g, "a")

	var names []string
	for _, e := range must(f.GlideinTimeline(t.Context(), g.ID))(t) {
		names = append(names, e.Name)
	}
	if diff := cmp.Diff([]string{"SetupSubmitted", "GlideinSubmitted", "GlideinStarted"}, names); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
	if got := must(f.SiteTimeline(t.Context(), "local"))(t); len(got) != 3 {
		t.Errorf("timeline of the site: %v", got)
	}
	var objects, last = map[string]bool{}, int64(0)
	for _, e := range must(f.GlideinHistory(t.Context(), g.ID))(t) {
		if e.ID <= last || e.Object == "job" && e.Of != int64(job.ID) {
			t.Errorf("entry %+v after %d", e, last)
		}
		objects[e.Object], last = true, e.ID
	}
	if !objects["glidein"] || !objects["job"] || len(objects) != 2 {
		t.Errorf("history of %v, want glidein and job", objects)
	}
}

func TestGlideinLog(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	g := f.glidein(t)
	_, err := f.GlideinLog(t.Context(), g.ID, 0, "stdout")
	wantKind(t, "no attempt", err, corral.NotFound, "attempt")
	f.attempt(t, g, "a")
	f.files["a/stderr"] = "hello\n"
	for _, attempt := range []int{0, 1} {
		if got, err := f.GlideinLog(t.Context(), g.ID, attempt, "stderr"); err != nil || string(got) != "hello\n" {
			t.Errorf("GlideinLog(attempt %d) = %q, %v", attempt, got, err)
		}
	}
	_, err = f.GlideinLog(t.Context(), g.ID, 0, "stdout")
	wantKind(t, "no file", err, corral.NotFound, "file")
	_, err = f.GlideinLog(t.Context(), g.ID, 2, "stderr")
	wantKind(t, "no such attempt", err, corral.NotFound, "attempt")
	_, err = f.GlideinLog(t.Context(), g.ID, 0, "order.json") // it contains the token
	wantKind(t, "the order", err, corral.Invalid, "file")
}

func TestClusters(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	for _, bad := range []api.NewCluster{{Name: "a", Kind: "slurm"}, {Name: "a"}} {
		_, err := f.CreateCluster(t.Context(), bad, "")
		wantKind(t, "kind", err, corral.Invalid, "kind")
	}
	_, err := f.CreateCluster(t.Context(), api.NewCluster{Name: "A", Kind: corral.Embedded}, "")
	wantKind(t, "name", err, corral.Invalid, "name")
	_, err = f.CreateCluster(t.Context(), api.NewCluster{Name: "default", Kind: corral.Embedded}, "")
	wantKind(t, "taken", err, corral.Conflict, "name")

	g := f.glidein(t)
	f.crowd.register(corral.Worker{ID: "a/0", Cluster: 1, Glidein: g.ID, Attempt: 1, CPUs: 1, Connected: true})
	if got := must(f.Workers(t.Context(), "default"))(t); len(got) != 1 || got[0].ID != "a/0" {
		t.Errorf("workers %v", got)
	}
	_, err = f.RemoveCluster(t.Context(), "default")
	wantKind(t, "in use", err, corral.Conflict, "")
	if !strings.Contains(err.Error(), "glidein 1") {
		t.Errorf("error %q does not name the glidein", err)
	}
	must(f.RemoveGlidein(t.Context(), g.ID, true))(t)
	for range 2 {
		if got := must(f.RemoveCluster(t.Context(), "1"))(t); got.State != corral.ClusterDeleted {
			t.Errorf("cluster is %s", got.State)
		}
	}
	if got := must(f.ClusterHistory(t.Context(), "1"))(t); len(got) != 3 {
		t.Errorf("history %v", got)
	}
	if got := must(f.Clusters(t.Context(), api.Filter{}))(t); len(got) != 0 {
		t.Errorf("clusters %v", got)
	}
}
