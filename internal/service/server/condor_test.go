package server_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/server"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/packages/htcondor"
)

// token is the text of an IDTOKEN, as far as a server validates it.
const token = "eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJwb29sIn0.c2VjcmV0LXNpZ25hdHVyZQ"

const newest = "" // the ref of the newest HTCondor

// condorFixture is a server with an HTCondor, and with a READY site local.
func condorFixture(t *testing.T) *fixture {
	t.Helper()
	f := start(t)
	f.readySite(t)
	f.release(t, "23.9.6")
	return f
}

// condorFiles look like an HTCondor unless it is started.
func condorFiles(version string) fstest.MapFS {
	return fstest.MapFS{
		"sbin/condor_master": {Data: []byte("a master"), Mode: 0o755},
		"bin/condor_version": {Data: []byte("\x00$CondorVersion: " + version + " 2026-07-12 $\x00"), Mode: 0o755},
	}
}

// release adds an HTCondor for pools to the catalog.
func (f *fixture) release(t *testing.T, version string) corral.Package {
	t.Helper()
	var b bytes.Buffer
	h := packages.Header{What: htcondor.Pool, Version: version, Platform: corral.Platform{OS: "linux", Arch: htcondor.Arch(), Libc: packages.Static}}
	must(packages.Build(&b, h, condorFiles(version)))(t)
	archive := filepath.Join(t.TempDir(), "pool.tar.gz")
	if err := os.WriteFile(archive, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return must(f.ImportPackage(t.Context(), api.NewPackage{Source: archive, Sign: true}, ""))(t)
}

// installed returns a folder with an HTCondor that a user has installed.
func installed(t *testing.T, version string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "condor "+version)
	if err := os.CopyFS(dir, condorFiles(version)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// pool creates cluster mine.
func (f *fixture) pool(t *testing.T) corral.Cluster {
	t.Helper()
	return must(f.CreateCluster(t.Context(), api.NewCluster{Name: "mine", Kind: corral.Condor}, ""))(t)
}

// move moves a cluster like the pools do.
func (f *fixture) move(t *testing.T, id corral.ClusterID, moves ...corral.ClusterMove) {
	t.Helper()
	f.write(t, func(tx *store.Tx) error {
		for _, m := range moves {
			if _, err := tx.MoveCluster(id, m, "because"); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestCondorClusterIsCreated(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	got := f.pool(t)
	want := corral.Cluster{ID: 2, Name: "mine", Owner: "local", Kind: corral.Condor, State: corral.ClusterStarting,
		CreatedAt: got.CreatedAt, UpdatedAt: got.CreatedAt}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
	listening := must(f.CreateCluster(t.Context(), api.NewCluster{Name: "here", Kind: corral.Condor, Address: "127.0.0.1"}, ""))(t)
	if host, port, err := net.SplitHostPort(listening.Collector); err != nil || host != "127.0.0.1" || port == "0" {
		t.Errorf("collector %q, want 127.0.0.1 and a free port", listening.Collector)
	}
}

func TestBadCondorClusters(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	taken := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	const condor, embedded = corral.Condor, corral.Embedded
	for _, tc := range []struct {
		name  string
		in    api.NewCluster
		kind  corral.Kind
		place string
	}{
		{"embedded htcondor", api.NewCluster{Kind: embedded, HTCondor: "/opt/condor"}, corral.Invalid, "htcondor"},
		{"embedded address", api.NewCluster{Kind: embedded, Address: "127.0.0.1"}, corral.Invalid, "address"},
		{"embedded collector", api.NewCluster{Kind: embedded, Collector: "a:1", Token: token}, corral.Invalid, "collector"},
		{"embedded token", api.NewCluster{Kind: embedded, Token: token}, corral.Invalid, "token"},
		{"embedded schedd", api.NewCluster{Kind: embedded, Schedd: "s"}, corral.Invalid, "schedd"},
		{"relative folder", api.NewCluster{Kind: condor, HTCondor: "./condor"}, corral.Invalid, "htcondor"},
		{"all folders", api.NewCluster{Kind: condor, HTCondor: "/."}, corral.Invalid, "htcondor"},
		{"folder of two lines", api.NewCluster{Kind: condor, HTCondor: "/opt\n/x"}, corral.Invalid, "htcondor"},
		{"no such package", api.NewCluster{Kind: condor, HTCondor: "htcondor-pool-1.0-linux-x86_64-static"}, corral.NotFound, ""},
		{"name for an address", api.NewCluster{Kind: condor, Address: "localhost"}, corral.Invalid, "address"},
		{"every address", api.NewCluster{Kind: condor, Address: "0.0.0.0:9618"}, corral.Invalid, "address"},
		{"port 0", api.NewCluster{Kind: condor, Address: "127.0.0.1:0"}, corral.Invalid, "address"},
		{"address of somebody else", api.NewCluster{Kind: condor, Address: "192.0.2.1"}, corral.Unsatisfiable, "address"},
		{"address in use", api.NewCluster{Kind: condor, Address: taken.Addr().String()}, corral.Conflict, "address"},
		{"token of no pool", api.NewCluster{Kind: condor, Token: token}, corral.Invalid, "token"},
		{"schedd of no pool", api.NewCluster{Kind: condor, Schedd: "s"}, corral.Invalid, "schedd"},
		{"no token", api.NewCluster{Kind: condor, Collector: "cm.example:9618"}, corral.Invalid, "token"},
		{"file for a token", api.NewCluster{Kind: condor, Collector: "cm.example:9618", Token: "/home/me/token"}, corral.Invalid, "token"},
		{"long token", api.NewCluster{Kind: condor, Collector: "cm.example:9618", Token: token + strings.Repeat("x", 16<<10)}, corral.Invalid, "token"},
		{"no port", api.NewCluster{Kind: condor, Collector: "cm.example", Token: token}, corral.Invalid, "collector"},
		{"port 0 of a collector", api.NewCluster{Kind: condor, Collector: "cm.example:0", Token: token}, corral.Invalid, "collector"},
		{"no host", api.NewCluster{Kind: condor, Collector: ":9618", Token: token}, corral.Invalid, "collector"},
		{"two collectors", api.NewCluster{Kind: condor, Collector: "a,b:9618", Token: token}, corral.Invalid, "collector"},
		{"attached and listening", api.NewCluster{Kind: condor, Collector: "a:9618", Token: token, Address: "127.0.0.1"}, corral.Invalid, "address"},
		{"schedd of two words", api.NewCluster{Kind: condor, Collector: "a:9618", Token: token, Schedd: "a b"}, corral.Invalid, "schedd"},
	} {
		tc.in.Name = "mine"
		_, err := f.CreateCluster(t.Context(), tc.in, "")
		wantKind(t, tc.name, err, tc.kind, tc.place)
	}
	if clusters := must(f.Clusters(t.Context(), api.Filter{All: true}))(t); len(clusters) != 1 || len(f.drawer.tokens) != 0 {
		t.Errorf("%d clusters and %d tokens are there, want the default cluster alone", len(clusters), len(f.drawer.tokens))
	}
}

// A corrald that must not have condor clusters reports the reason and stores no token; embedded clusters are not
// affected.
func TestCondorIsRefused(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	f.config.CondorRefused = corral.Errorf(corral.Unsatisfiable, "corrald runs as root, whose jobs HTCondor refuses: start it with --run-as USER")
	f.server = server.New(slog.New(slog.DiscardHandler), f.db, f.config)
	for _, body := range []string{`{"name": "mine", "kind": "condor"}`,
		`{"name": "mine", "kind": "condor", "collector": "cm.example:9618", "token": "` + token + `"}`} {
		status, p, _ := f.send(t, "POST", "/v1/clusters", body)
		if status != 422 || !strings.Contains(p.Detail, "--run-as USER") {
			t.Errorf("%s answered %d %+v", body, status, p)
		}
	}
	if len(f.drawer.tokens) != 0 {
		t.Error("a token was kept")
	}
	if status, p, _ := f.send(t, "POST", "/v1/clusters", `{"name": "mine", "kind": "embedded"}`); status != 201 {
		t.Errorf("embedded cluster: %d %+v", status, p)
	}
}

// The token of a remote pool is passed to the pools and appears nowhere else: not in an answer, the history, the log
// or the database.
func TestAttachedClusterKeepsItsTokenSecret(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	body := `{"name": "theirs", "kind": "condor", "collector": "cm.example:9618", "schedd": "s@cm", "token": "` + token + `"}`
	var answers bytes.Buffer
	for range 2 { // the second request gets the stored answer
		status, p, answer := f.send(t, "POST", "/v1/clusters", body, api.KeyHeader, "once")
		if status != 201 {
			t.Fatalf("answered %d %+v", status, p)
		}
		answers.WriteString(answer)
	}
	k := must(f.Cluster(t.Context(), "theirs"))(t)
	if !k.Attached || k.Collector != "cm.example:9618" || k.Schedd != "s@cm" || k.State != corral.ClusterStarting {
		t.Errorf("cluster %+v", k)
	}
	if f.drawer.tokens[k.ID] != token {
		t.Errorf("the pools have %v", f.drawer.tokens)
	}
	status, _, refusal := f.send(t, "POST", "/v1/clusters", body)
	if status != 409 {
		t.Errorf("asked again: %d", status)
	}
	_, _, history := f.send(t, "GET", "/v1/clusters/theirs/history", "")
	answers.WriteString(refusal + history)
	secrets := strings.Split(token, ".")
	for what, text := range map[string]string{"an answer": answers.String(), "the log": f.log.String(), "the database": stored(t)} {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s has the token in it", what)
			}
		}
	}
}

// stored returns the contents of the test database's files.
func stored(t *testing.T) string {
	t.Helper()
	var all []byte
	files := must(filepath.Glob(filepath.Join(filepath.Dir(t.TempDir()), "*", "corral.db*")))(t)
	if len(files) == 0 {
		t.Fatal("the database has no file")
	}
	for _, file := range files {
		all = append(all, must(os.ReadFile(file))(t)...)
	}
	return string(all)
}

// If a token cannot be stored, no cluster is created.
func TestAttachedClusterWithoutItsToken(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	f.drawer.full = errors.New("no space left on device")
	theirs := api.NewCluster{Name: "theirs", Kind: corral.Condor, Collector: "cm.example:9618", Token: token}
	_, err := f.CreateCluster(t.Context(), theirs, "")
	wantKind(t, "full", err, corral.Internal, "")
	_, err = f.Cluster(t.Context(), "theirs")
	wantKind(t, "its cluster", err, corral.NotFound, "cluster")
	f.drawer.full = nil
	must(f.CreateCluster(t.Context(), theirs, ""))(t)
}

func TestClusterIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	k := f.pool(t)
	_, err := f.WaitCluster(t.Context(), "mine", "READY", 10*time.Millisecond)
	wantKind(t, "starting", err, corral.Timeout, "")
	done := later(func() error {
		_, err := f.WaitCluster(t.Context(), "mine", "READY", 0)
		return err
	})
	f.move(t, k.ID, corral.ClusterStarted)
	if err := <-done; err != nil {
		t.Errorf("WaitCluster(READY): %v", err)
	}
	done = later(func() error {
		_, err := f.WaitCluster(t.Context(), "2", "DELETED", 0)
		return err
	})
	f.move(t, k.ID, corral.ClusterStart, corral.ClusterFail)
	err = <-done
	wantKind(t, "failed", err, corral.Failed, "")
	if want := "cluster mine is FAILED (because) and never becomes DELETED"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	_, err = f.WaitCluster(t.Context(), "mine", "workers", 0)
	wantKind(t, "what clusters do not have", err, corral.Invalid, "wait")
}

func TestClusterIsStartedAndStopped(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	k := f.pool(t)
	f.move(t, k.ID, corral.ClusterStarted)
	for range 2 {
		if got := must(f.StopCluster(t.Context(), "mine"))(t); got.State != corral.ClusterStopping {
			t.Errorf("cluster is %s, want STOPPING", got.State)
		}
	}
	_, err := f.StartCluster(t.Context(), "mine", api.StartCluster{})
	wantKind(t, "while it stops", err, corral.Conflict, "cluster mine")
	f.move(t, k.ID, corral.ClusterStopEnd)
	if got := must(f.StopCluster(t.Context(), "mine"))(t); got.State != corral.ClusterStopped {
		t.Errorf("cluster is %s, want STOPPED", got.State)
	}
	for range 2 {
		if got := must(f.StartCluster(t.Context(), "mine", api.StartCluster{}))(t); got.State != corral.ClusterStarting {
			t.Errorf("cluster is %s, want STARTING", got.State)
		}
	}
}

// A cluster keeps its HTCondor until another one, or the newest, is requested.
func TestClusterIsUpgraded(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	old, next := f.release(t, "23.9.5").Name, installed(t, "24.0.1")
	k := must(f.CreateCluster(t.Context(), api.NewCluster{Name: "mine", Kind: corral.Condor, HTCondor: old}, ""))(t)
	for _, tc := range []struct {
		in   api.StartCluster
		want string
	}{{api.StartCluster{}, old}, {api.StartCluster{HTCondor: next}, next}, {api.StartCluster{}, next}, {api.StartCluster{Newest: true}, newest}} {
		f.move(t, k.ID, corral.ClusterStarted)
		if got := must(f.StartCluster(t.Context(), "mine", tc.in))(t); got.State != corral.ClusterStarting || got.HTCondor != tc.want {
			t.Errorf("StartCluster(%+v) = %s of %q, want of %q", tc.in, got.State, got.HTCondor, tc.want)
		}
	}
	_, err := f.StartCluster(t.Context(), "mine", api.StartCluster{HTCondor: "nothing"})
	wantKind(t, "no such package", err, corral.NotFound, "")
	_, err = f.StartCluster(t.Context(), "mine", api.StartCluster{HTCondor: "../x"})
	wantKind(t, "no package", err, corral.Invalid, "htcondor")
	_, err = f.StartCluster(t.Context(), "mine", api.StartCluster{HTCondor: next, Newest: true})
	wantKind(t, "both", err, corral.Invalid, "newest")
}

// A pool's package stays while a cluster uses it, because restarts need it.
func TestPackageOfAClusterStays(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	p := f.release(t, "23.9.5")
	k := must(f.CreateCluster(t.Context(), api.NewCluster{Name: "mine", Kind: corral.Condor, HTCondor: p.Name}, ""))(t)
	_, err := f.RemovePackage(t.Context(), p.Name)
	wantKind(t, "in use", err, corral.Conflict, "package")
	if err == nil || !strings.Contains(err.Error(), "cluster mine") {
		t.Errorf("error %v, want one that names the cluster", err)
	}
	must(f.VerifyPackage(t.Context(), p.Name))(t)
	f.move(t, k.ID, corral.ClusterStarted)
	must(f.StartCluster(t.Context(), "mine", api.StartCluster{Newest: true}))(t)
	must(f.RemovePackage(t.Context(), p.Name))(t)
}

// A pool assigns no jobs to workers that are newer than the pool: it cannot be downgraded below workers that may exist.
func TestClusterIsNotMadeOlderThanItsWorkers(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	old, next := installed(t, "23.9.6"), installed(t, "24.0.1")
	k := must(f.CreateCluster(t.Context(), api.NewCluster{Name: "mine", Kind: corral.Condor, HTCondor: next}, ""))(t)
	f.move(t, k.ID, corral.ClusterStarted)
	f.write(t, func(tx *store.Tx) error {
		_, err := tx.SetCluster(k.ID, func(k *corral.Cluster) { k.Version = "24.0.1" })
		return err
	})
	in := small()
	in.Cluster = "mine"
	g := must(f.CreateGlidein(t.Context(), in, ""))(t)
	down := func() (corral.Cluster, error) {
		return f.StartCluster(t.Context(), "mine", api.StartCluster{HTCondor: old})
	}
	if got := must(down())(t); got.HTCondor != old { // there is no newer worker
		t.Errorf("cluster of %s, want %s", got.HTCondor, old)
	}
	f.move(t, k.ID, corral.ClusterStarted)
	f.worker(t, "24.0.0")
	_, err := down()
	wantKind(t, "with a newer worker", err, corral.Conflict, "htcondor")
	if err == nil || !strings.Contains(err.Error(), "24.0.0") || !strings.Contains(err.Error(), "glidein 1") {
		t.Errorf("error %v, want one that names the worker's version and the glidein", err)
	}
	must(f.RemoveGlidein(t.Context(), g.ID, true))(t)
	must(down())(t)
}

// worker adds a worker package of HTCondor to the catalog.
func (f *fixture) worker(t *testing.T, version string) {
	t.Helper()
	f.write(t, func(tx *store.Tx) error {
		_, err := tx.CreatePackage(corral.Package{Owner: "local", Name: "htcondor-" + version, What: "htcondor", Version: version,
			Platform: corral.Platform{OS: "linux", Arch: "x86_64", Libc: "static"}, Digest: "sha256:" + strings.Repeat("a", 64), SizeBytes: 1, Key: "k", Signature: "s"})
		return err
	})
}

func TestOnlyOwnPoolsAreStartedAndStopped(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	_, err := f.StartCluster(t.Context(), "default", api.StartCluster{})
	wantKind(t, "start embedded", err, corral.Unsatisfiable, "cluster")
	_, err = f.StopCluster(t.Context(), "default")
	wantKind(t, "stop embedded", err, corral.Unsatisfiable, "cluster")
	theirs := must(f.CreateCluster(t.Context(), api.NewCluster{Name: "theirs", Kind: corral.Condor, Collector: "cm.example:9618", Token: token}, ""))(t)
	f.move(t, theirs.ID, corral.ClusterStarted)
	_, err = f.StopCluster(t.Context(), "theirs")
	wantKind(t, "stop theirs", err, corral.Unsatisfiable, "cluster")
	if got := must(f.StartCluster(t.Context(), "theirs", api.StartCluster{}))(t); got.State != corral.ClusterStarting {
		t.Errorf("attached again: %s", got.State)
	}
}

func TestCondorClusterIsRemoved(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	k := f.pool(t)
	f.move(t, k.ID, corral.ClusterStarted)
	g := must(f.CreateGlidein(t.Context(), api.NewGlidein{Site: "local", Cluster: "mine",
		Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: small().Walltime}}, ""))(t)
	_, err := f.RemoveCluster(t.Context(), "mine")
	wantKind(t, "in use", err, corral.Conflict, "")
	must(f.RemoveGlidein(t.Context(), g.ID, true))(t)
	for range 2 {
		if got := must(f.RemoveCluster(t.Context(), "mine"))(t); got.State != corral.ClusterRemoving {
			t.Errorf("cluster is %s, want REMOVING", got.State)
		}
	}
	f.move(t, k.ID, corral.ClusterRemoved)
	if got := must(f.RemoveCluster(t.Context(), "2"))(t); got.State != corral.ClusterDeleted {
		t.Errorf("cluster is %s, want DELETED", got.State)
	}
}

func TestClusterEnv(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	want := api.Env{Variables: []api.Variable{{Name: "CORRAL_CLUSTER", Value: "default"}}, Path: []string{}}
	if diff := cmp.Diff(want, must(f.ClusterEnv(t.Context(), "default"))(t)); diff != "" {
		t.Errorf("embedded (-want +got):\n%s", diff)
	}
	k := f.pool(t)
	_, err := f.ClusterEnv(t.Context(), "mine")
	wantKind(t, "not yet", err, corral.Conflict, "cluster")
	f.move(t, k.ID, corral.ClusterStarted)
	want = api.Env{
		Variables: []api.Variable{{Name: "CONDOR_CONFIG", Value: "/srv/clusters/2/condor_config"}, {Name: "CORRAL_CLUSTER", Value: "mine"}},
		Path:      []string{"/srv/clusters/2/release/bin", "/srv/clusters/2/release/sbin"},
	}
	if diff := cmp.Diff(want, must(f.ClusterEnv(t.Context(), "mine"))(t)); diff != "" {
		t.Errorf("condor (-want +got):\n%s", diff)
	}
}

func TestGlideinOfACondorCluster(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	k := f.pool(t)
	in := small()
	in.Cluster = "mine"
	_, err := f.CreateGlidein(t.Context(), in, "")
	wantKind(t, "before the pool is there", err, corral.Conflict, "cluster")
	f.move(t, k.ID, corral.ClusterStarted)
	plain := must(f.CreateGlidein(t.Context(), in, ""))(t)
	if plain.Broker != corral.BrokerAuto || plain.Slots != corral.SlotsPartitionable || plain.CCB != nil || plain.QueueLimit != corral.DefaultQueueTimeout {
		t.Errorf("glidein %+v, want the defaults", plain)
	}
	in.Broker, in.CCB, in.Slots = corral.BrokerCCB, []string{"ccb.example:9618", "[2001:db8::1]:9618"}, corral.SlotsStatic
	in.QueueLimit = corral.Seconds(time.Hour)
	got := must(f.CreateGlidein(t.Context(), in, ""))(t)
	if got.Broker != in.Broker || !cmp.Equal(got.CCB, in.CCB) || got.Slots != in.Slots || got.QueueLimit != in.QueueLimit {
		t.Errorf("glidein %+v, want what was asked for", got)
	}
	for _, tc := range []struct {
		name  string
		edit  func(*api.NewGlidein)
		kind  corral.Kind
		place string
	}{
		{"slots", func(g *api.NewGlidein) { g.Slots = "round" }, corral.Invalid, "slots"},
		{"broker without port", func(g *api.NewGlidein) { g.CCB = []string{"ccb.example"} }, corral.Invalid, "ccb"},
		{"brokers of none", func(g *api.NewGlidein) { g.Broker = corral.BrokerNone }, corral.Invalid, "ccb"},
		{"many brokers", func(g *api.NewGlidein) { g.CCB = make([]string, 17) }, corral.Invalid, "ccb"},
		{"relay", func(g *api.NewGlidein) { g.Broker, g.CCB = corral.BrokerRelay, nil }, corral.Unsatisfiable, "broker"},
		{"gpus", func(g *api.NewGlidein) { g.GPUs = 1 }, corral.Unsatisfiable, "gpus"},
	} {
		bad := in
		tc.edit(&bad)
		_, err := f.CreateGlidein(t.Context(), bad, "")
		wantKind(t, tc.name, err, tc.kind, tc.place)
	}
	f.write(t, func(tx *store.Tx) error {
		_, err := tx.SetCluster(2, func(k *corral.Cluster) { k.Version = "23.9.6" })
		if err == nil {
			_, err = tx.SetSite(1, func(s *corral.Site) { s.Platform = corral.Platform{OS: "linux", Arch: "x86_64", Libc: "musl"} })
		}
		return err
	})
	_, err = f.CreateGlidein(t.Context(), in, "")
	wantKind(t, "no package for the site", err, corral.Unsatisfiable, "")
	embedded := small()
	must(f.CreateGlidein(t.Context(), embedded, ""))(t)
}

// Places where HTCondor cannot run are refused before anything is sent there; embedded workers can run there.
func TestGlideinAtARootThatHTCondorCannotName(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	k := f.pool(t)
	f.move(t, k.ID, corral.ClusterStarted)
	for name, root := range map[string]string{"blank": "/srv/my site", "macro": "/srv/$(HOME)", "comma": "/srv/a,b"} {
		var site corral.Site
		f.write(t, func(tx *store.Tx) (err error) {
			site, err = tx.CreateSite(corral.Site{Name: name, Owner: "local", Contact: "local:", Batch: "fork", Root: root})
			return err
		})
		_, err := f.CreateGlidein(t.Context(), api.NewGlidein{Site: name, Cluster: "mine",
			Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: small().Walltime}}, "")
		if refused := err != nil && strings.Contains(err.Error(), "its configuration cannot name"); refused != (name != "comma") {
			t.Errorf("%s at %s: %v", name, site.Root, err)
		}
	}
}

// A pool's collector lists workers for a moment after they have left; a finished glidein has none.
func TestGlideinThatIsOverHasNoWorkers(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	g := f.glidein(t)
	f.crowd.register(corral.Worker{ID: "a/0", Cluster: 1, Glidein: g.ID, Attempt: 1, CPUs: 1, Connected: true})
	if got := must(f.Glidein(t.Context(), g.ID))(t); got.WorkersNow != 1 {
		t.Errorf("%d workers, want 1", got.WorkersNow)
	}
	if got := must(f.RemoveGlidein(t.Context(), g.ID, true))(t); got.State != corral.GlideinDeleted || got.WorkersNow != 0 || got.CPUsNow != 0 {
		t.Errorf("glidein %s has %d workers with %d cpus", got.State, got.WorkersNow, got.CPUsNow)
	}
}

func TestNetworkIsProbed(t *testing.T) {
	t.Parallel()
	f := condorFixture(t)
	mine := f.pool(t)
	_, err := f.ProbeSite(t.Context(), "local", api.NewProbe{Network: true, Cluster: "mine"})
	wantKind(t, "of a pool that starts", err, corral.Conflict, "cluster")
	f.move(t, mine.ID, corral.ClusterStarted)
	p := must(f.ProbeSite(t.Context(), "local", api.NewProbe{Network: true, Cluster: "mine"}))(t).Network
	if p == nil || p.Site != "local" || p.Cluster != "mine" || p.Broker != corral.BrokerCCB || len(p.Measured) != 2 {
		t.Fatalf("ProbeSite() = %+v", p)
	}
	history := must(f.SiteHistory(t.Context(), "local"))(t)
	if last := history[len(history)-1]; last.Event != "probe" || !strings.Contains(last.Reason, "would be reached by --broker ccb: "+p.Reason) {
		t.Errorf("the site's history ends with %+v", last)
	}
	_, err = f.ProbeSite(t.Context(), "local", api.NewProbe{Network: true})
	wantKind(t, "of an embedded cluster", err, corral.Unsatisfiable, "cluster")
	_, err = f.ProbeSite(t.Context(), "local", api.NewProbe{Cluster: "mine"})
	wantKind(t, "of a cluster, but not the network", err, corral.Invalid, "cluster")
	_, err = f.ProbeSite(t.Context(), "nowhere", api.NewProbe{Network: true, Cluster: "mine"})
	wantKind(t, "at no site", err, corral.NotFound, "site")
	f.unwell = corral.Errorf(corral.Timeout, "its queue may be long")
	if _, err = f.ProbeSite(t.Context(), "local", api.NewProbe{Network: true, Cluster: "mine"}); corral.KindOf(err) != corral.Timeout {
		t.Errorf("a probe that does not come: %v", err)
	}
}

func TestSiteIsProbed(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.hpc(t) // it is not READY: only its head node can be examined
	p := must(f.ProbeSite(t.Context(), "hpc", api.NewProbe{}))(t)
	if p.Site != "hpc" || p.Facts.Batch != "slurm 22.05.8" || p.Facts.Outbound == nil || !*p.Facts.Outbound || p.Network != nil {
		t.Errorf("ProbeSite() = %+v", p)
	}
	history := must(f.SiteHistory(t.Context(), "hpc"))(t)
	if last := history[len(history)-1]; last.Event != "probe" || last.Reason != "slurm 22.05.8, queues: short" {
		t.Errorf("the site's history ends with %+v", last)
	}
	f.ill = corral.Errorf(corral.Unavailable, "reaching site hpc: no route to host")
	if status, p, _ := f.send(t, "POST", "/v1/sites/hpc/probe", "{}"); status != 502 || p.Kind != corral.Unavailable {
		t.Errorf("a site that is not there: %d %+v, want 502", status, p)
	}
	must(f.RemoveSite(t.Context(), "hpc", true))(t)
	_, err := f.ProbeSite(t.Context(), "1", api.NewProbe{})
	wantKind(t, "a site that is gone", err, corral.Conflict, "site")
}
