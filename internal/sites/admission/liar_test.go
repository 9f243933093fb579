package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/usage"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/node/pilot"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/internal/work/run"
)

// The stolen attempt. Its two hosts have four CPUs together.
const (
	liesHosts, liesCPUs, liesMiB = 2, 2, 2000
	lies                         = 1000
	liarPatience                 = 3 * time.Minute
)

// A client that has an attempt's token, with or without the secret of its session, sends a thousand random requests
// to the real worker port. Another owner's rows do not change, the attempt never has more CPUs than it was given, and
// its usage stays within them.
func TestLiar(t *testing.T) {
	t.Parallel()
	for name, knowsSecret := range map[string]bool{"with the token": false, "with the secret, too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			honest := s.lease()
			before := s.rowsOf("bob")
			l := &liar{scene: s, rand: rand.New(rand.NewPCG(1, 2)), secret: "guessed"}
			if knowsSecret {
				l.secret = honest
			}
			admitted := 0
			for range lies {
				if l.visit() {
					admitted++
				}
				if cpus := s.registered(); cpus > liesHosts*liesCPUs {
					t.Fatalf("%d cpus are registered, want at most %d", cpus, liesHosts*liesCPUs)
				}
			}
			if knowsSecret {
				l.finish()
			}
			if knowsSecret != (admitted > 0) {
				t.Errorf("%d of %d requests were admitted", admitted, lies)
			}
			if diff := cmp.Diff(before, s.rowsOf("bob")); diff != "" {
				t.Errorf("rows of another owner have changed (-before +after):\n%s", diff)
			}
			s.stop()
			s.checkUsage(knowsSecret)
		})
	}
}

// A scene is corrald's worker port over a real store, with the clusters, sites, attempts and runs of two owners.
type scene struct {
	*testing.T
	db       *store.DB
	clusters *admission.Clusters
	manager  *run.Manager
	key      admission.Key
	socket   string
	stolen   corral.Job
	token    string
	runs     []corral.Run // one for ann and one for bob
	stop     func()
}

func newScene(t *testing.T) *scene {
	s := &scene{T: t, db: storetest.OpenTest(t), key: admission.Key("a key of this test, as long as one"),
		socket: filepath.Join(t.TempDir(), "port")}
	s.open()
	t.Cleanup(func() { s.stop() })
	for i, owner := range []string{"ann", "bob"} {
		tag := fmt.Sprintf("corral-pilot-of%s", owner)
		j := s.attempt(owner, tag, s.key.Token(tag).Digest())
		if i == 0 {
			s.stolen, s.token = j, string(s.key.Token(tag))
		}
	}
	return s
}

// open starts the parts of corrald that serve workers, like a restarted corrald. stop ends them.
func (s *scene) open() {
	s.Helper()
	lg := slog.New(slog.DiscardHandler)
	s.clusters = admission.NewClusters(lg, s.db, s.key, dispatch.Config{})
	s.manager = run.NewManager(lg, s.db, s.clusters, filepath.Join(filepath.Dir(s.socket), "runs"))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- s.manager.Run(ctx) }()
	reach := func(context.Context, []string, string) (string, error) {
		return "", corral.Errorf(corral.Failed, "nothing is reached")
	}
	go func() { ended <- port.New(lg, s.clusters, reach).ServeUnix(ctx, s.socket) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		s.clusters.Close()
		if err := errors.Join(<-ended, <-ended); err != nil {
			s.Error(err)
		}
	})
	s.until("the port", func() bool { _, err := os.Stat(s.socket); return err == nil })
}

func (s *scene) until(what string, done func() bool) {
	s.Helper()
	for end := time.Now().Add(liarPatience); !done(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("waited %s for %s", liarPatience, what)
		}
	}
}

// attempt creates an owner's cluster, site, glidein, running attempt, and run of a hundred tasks.
func (s *scene) attempt(owner, tag, digest string) (j corral.Job) {
	s.Helper()
	var cluster corral.Cluster
	s.write(owner, func(tx *store.Tx) error {
		site, err := tx.CreateSite(corral.Site{Name: owner, Owner: owner, Contact: "local:", Batch: "fork", Root: "/" + owner})
		for _, move := range []corral.SiteMove{corral.SiteStage, corral.SiteStaged} {
			if err == nil {
				site, err = tx.MoveSite(site.ID, move, "")
			}
		}
		if err == nil {
			cluster, err = tx.CreateCluster(corral.Cluster{Name: "of-" + owner, Owner: owner, Kind: corral.Embedded})
		}
		var g corral.Glidein
		if err == nil {
			g, err = tx.CreateGlidein(corral.Glidein{Owner: owner, Site: site.ID, Cluster: cluster.ID, Hosts: liesHosts,
				CPUs: liesCPUs, MemoryMiB: liesMiB, Walltime: corral.Seconds(time.Hour)})
		}
		if err == nil {
			j, err = tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: site.ID, Glidein: g.ID, Tag: tag, TokenDigest: digest,
				TokenEndsAt: time.Now().Add(time.Hour)})
		}
		for _, move := range []corral.JobMove{corral.JobSubmit, corral.JobStart} {
			if err == nil {
				j, err = tx.MoveJob(j.ID, corral.JobEvent{Move: move, At: tx.Now(), SiteJobID: tag})
			}
		}
		return err
	})
	in := api.NewRun{Workflow: manyTasks(), WorkflowName: "many.json"}
	flow, err := request.Workflow(s.Context(), in.Workflow, in.WorkflowName)
	if err != nil {
		s.Fatal(err)
	}
	p, err := s.manager.Prepare(s.Context(), cluster.ID, in, flow)
	if err != nil {
		s.Fatal(err)
	}
	s.write(owner, func(tx *store.Tx) error {
		row, err := p.Insert(tx, (*store.Tx).CreateRun)
		s.runs = append(s.runs, row)
		return err
	})
	s.manager.Start(s.runs[len(s.runs)-1].ID)
	return j
}

func (s *scene) write(owner string, fn func(*store.Tx) error) {
	s.Helper()
	if err := s.db.Owner(owner).Write(s.Context(), owner, fn); err != nil {
		s.Fatal(err)
	}
}

// manyTasks returns a workflow of a hundred tasks without edges.
func manyTasks() json.RawMessage {
	type object = map[string]any
	var specification, exec []object
	for i := range 100 {
		id := fmt.Sprintf("t%d", i)
		specification = append(specification, object{"name": "step", "id": id, "parents": []string{}, "children": []string{}})
		exec = append(exec, object{"id": id, "runtimeInSeconds": 1, "coreCount": 1,
			"command": object{"program": "true", "arguments": []string{}}})
	}
	text, err := json.Marshal(object{"name": "many", "schemaVersion": "1.5", "createdAt": "2026-11-21T00:00:00Z",
		"workflow": object{
			"specification": object{"tasks": specification, "files": []object{}},
			"execution":     object{"makespanInSeconds": 0, "executedAt": "2026-11-21T00:00:00Z", "tasks": exec},
		}})
	if err != nil {
		panic(err)
	}
	return text
}

// lease lets the attempt's own pilot take its lease and returns its secret. The pilot stays connected.
func (s *scene) lease() (secret string) {
	s.Helper()
	secret = "made by the pilot"
	l, err := pilot.Dial(s.Context(), slog.New(slog.DiscardHandler), pilot.LinkConfig{
		Tag: s.stolen.Tag, Token: s.token, Holder: "pilot", Secret: secret, Addresses: []string{"unix:" + s.socket},
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { l.Close() })
	return secret
}

// rowsOf returns all of an owner's rows in the store, with their histories.
func (s *scene) rowsOf(owner string) (rows []string) {
	s.Helper()
	add := func(all ...any) {
		for _, v := range all {
			text, err := json.Marshal(v)
			if err != nil {
				s.Fatal(err)
			}
			rows = append(rows, string(text))
		}
	}
	err := storetest.All(s.db).View(s.Context(), func(tx *store.Tx) error {
		site, err := tx.SiteNamed(owner)
		if err != nil {
			return err
		}
		cluster, err := tx.ClusterNamed("of-" + owner)
		if err != nil {
			return err
		}
		glideins, err := tx.Glideins(store.GlideinFilter{Site: site.ID})
		if err != nil {
			return err
		}
		jobs, err := tx.Jobs(store.JobFilter{Site: site.ID})
		if err != nil {
			return err
		}
		add(site, cluster, glideins, jobs)
		for _, j := range jobs {
			add(j.LeaseHolder, j.Session, j.TokenDigest)
			h, err := tx.History(corral.ObjectJob, int64(j.ID), store.Page{})
			if err != nil {
				return err
			}
			add(h)
		}
		for _, r := range s.runs {
			if r.Owner != owner {
				continue
			}
			row, err := tx.Run(r.ID)
			if err != nil {
				return err
			}
			h, err := tx.History(corral.ObjectRun, int64(r.ID), store.Page{})
			if err != nil {
				return err
			}
			add(row, h)
		}
		w := usage.NewWindow(time.Time{}, time.Time{}, tx.Now())
		work, err := tx.Work(w)
		for _, v := range work {
			if v.User == owner {
				add(v)
			}
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return rows
}

// registered returns the number of CPUs of the stolen attempt's connected workers.
func (s *scene) registered() (cpus int) {
	for _, r := range s.runs {
		for _, w := range s.clusters.Workers(r.Cluster) {
			if w.Attempt == s.stolen.ID && w.Connected {
				cpus += w.CPUs
			}
		}
	}
	return cpus
}

// checkUsage compares the recorded usage with what the attempts held. If the client reported false results, they must
// be in the store.
func (s *scene) checkUsage(told bool) {
	s.Helper()
	err := storetest.All(s.db).View(s.Context(), func(tx *store.Tx) error {
		w := usage.NewWindow(time.Time{}, time.Time{}, tx.Now())
		held, err := tx.Holdings(w)
		if err != nil {
			return err
		}
		work, err := tx.Work(w)
		if err != nil {
			return err
		}
		most := usage.CoreTime(liesHosts*liesCPUs) * usage.CoreTime(tx.Now().Sub(s.stolen.StartedAt).Milliseconds())
		var said usage.CoreTime
		for _, v := range work {
			said += v.Used + v.Lost
		}
		if told != (said > most) {
			s.Errorf("%d ms of cpus are said to be used, of %d that were held", said, most)
		}
		for _, r := range usage.Sum(w, held, work, usage.ByUser) {
			if r.User == "ann" && r.Allocated() > most {
				s.Errorf("%s has %d ms of cpus, of which the attempt held %d: %+v", r.User, r.Allocated(), most, r)
			}
			if r.User == "bob" && r.Used+r.Lost > 0 {
				s.Errorf("bob, whose pilot never came, has %+v", r)
			}
		}
		return nil
	})
	if err != nil {
		s.Error(err)
	}
}

// A liar sends made-up requests.
type liar struct {
	*scene
	rand   *rand.Rand
	secret string
}

// pick returns one of several values.
func pick[T any](l *liar, from ...T) T { return from[l.rand.IntN(len(from))] }

// visit connects, sends a partly made-up hello and, if that was admitted, some more messages.
func (l *liar) visit() (admitted bool) {
	h := l.hello()
	nc, err := net.Dial("unix", l.socket)
	if err != nil {
		l.Fatal(err)
	}
	g, err := wire.Greet(l.Context(), nc, h)
	if err != nil {
		return false
	}
	defer g.Close()
	if h.Role == wire.RoleWorker {
		g.Send(l.held())
	}
	for range l.rand.IntN(6) {
		g.Send(l.message(h.Role))
	}
	if h.Role == wire.RoleWorker && h.Instance != "" {
		g.Send(&wire.Message{Type: wire.TypeHeartbeat, N: 1})
		_ = g.Net.SetReadDeadline(time.Now().Add(liarPatience))
		for {
			m, err := g.Recv(wire.MaxFrame)
			if err != nil || m.Type == wire.TypePong { // by then it was registered or refused
				break
			}
			if m.Type == wire.TypeAssign {
				g.Send(&wire.Message{Type: wire.TypeResults, Results: l.results(m.Jobs)})
			}
		}
	}
	return true
}

// finish serves the attempt's run to its end, with made-up times.
func (l *liar) finish() {
	h := &wire.Hello{Version: wire.Version, Role: wire.RoleWorker, Tag: l.stolen.Tag, Token: l.token, Secret: l.secret,
		Holder: "pilot", ID: l.stolen.Tag + "/0", Instance: "last", CPUs: liesCPUs, MemoryMiB: liesMiB, LeftMS: 1 << 33}
	nc, err := net.Dial("unix", l.socket)
	if err != nil {
		l.Fatal(err)
	}
	g, err := wire.Greet(l.Context(), nc, h)
	if err != nil {
		l.Fatal(err)
	}
	defer g.Close()
	g.Send(&wire.Message{Type: wire.TypeHeld})
	go func() {
		for {
			m, err := g.Recv(wire.MaxFrame)
			if err != nil {
				return
			}
			if m.Type == wire.TypeAssign {
				g.Send(&wire.Message{Type: wire.TypeResults, Results: l.results(m.Jobs)})
			}
		}
	}()
	l.until("the end of the run", func() bool {
		g.Send(&wire.Message{Type: wire.TypeHeartbeat, N: 1})
		row, err := store.Read(l.Context(), storetest.All(l.db), func(tx *store.Tx) (corral.Run, error) { return tx.Run(l.runs[0].ID) })
		return err == nil && row.State.Over()
	})
}

// hello returns a message that mostly equals that of the attempt's own workers.
func (l *liar) hello() *wire.Hello {
	tag := l.stolen.Tag
	if l.rand.IntN(10) == 0 {
		tag = pick(l, "corral-pilot-ofbob", "corral-pilot-none", "stream-1")
	}
	h := &wire.Hello{
		Version: wire.Version, Role: pick(l, wire.RoleWorker, wire.RoleWorker, wire.RoleWorker, wire.RolePilot, wire.RoleCourier),
		Tag: tag, Token: l.token, Secret: l.secret, Holder: "pilot", Host: "n1", PID: l.rand.IntN(1 << 20),
		ID: tag + "/" + pick(l, "0", "1", "0", "1", "2", "-1", "00", "1+7", "314"), Instance: pick(l, "a", "b", "c", ""),
		CPUs: pick(l, 1, 2, 2, 2, 3, 1<<16), MemoryMiB: pick(l, 1, liesMiB, liesMiB, 1<<20), GPUs: pick(l, 0, 0, 0, 1),
		LeftMS: l.rand.Int64N(1 << 33),
	}
	switch l.rand.IntN(10) {
	case 0:
		h.Holder = "another"
	case 1:
		h.Secret = pick(l, "", "x", l.token)
	case 2:
		h.Token = pick(l, "", "x", l.secret)
	}
	return h
}

// key returns the key of either owner's job, or of none.
func (l *liar) key() execution.Key {
	return execution.Key{Run: pick(l, l.runs[0].ID, l.runs[0].ID, l.runs[1].ID, 77), Seq: l.rand.Int64N(120) - 5}
}

func (l *liar) held() *wire.Message {
	m := &wire.Message{Type: wire.TypeHeld, Results: l.results(nil)}
	for range l.rand.IntN(4) {
		m.Held = append(m.Held, wire.HeldJob{Key: l.key(), Running: pick(l, true, false), CPUs: pick(l, 1, 2, 1<<30),
			MemoryMiB: pick(l, 0, 1<<40)})
	}
	return m
}

// results returns results of these jobs, or of others, with arbitrary times.
func (l *liar) results(of []execution.Job) (all []wire.Report) {
	result := func(k execution.Key, index, attempt int) {
		began := time.Now().Add(-time.Duration(l.rand.Int64N(int64(1000 * time.Hour))))
		all = append(all, wire.Report{N: l.rand.Int64N(1 << 40), Result: execution.Result{
			Key: k, Index: index, Attempt: attempt, Status: pick(l, execution.Done, execution.Failed, execution.Cut),
			Worker: pick(l, l.stolen.Tag+"/0", "corral-pilot-ofbob/0", ""), StartedAt: began,
			EndedAt: began.Add(time.Duration(l.rand.Int64N(int64(2000 * time.Hour)))), Reason: "as the site reports",
		}})
	}
	for i := range of {
		for _, t := range of[i].Tasks {
			result(of[i].Key(), t.Index, t.Attempt)
		}
	}
	for range l.rand.IntN(3) {
		result(l.key(), l.rand.IntN(120)-5, l.rand.IntN(3))
	}
	return all
}

// message returns any message of the protocol, whether or not it is valid at this point.
func (l *liar) message(role wire.Role) *wire.Message {
	n := l.rand.Int64N(100)
	switch {
	case l.rand.IntN(20) == 0:
		return &wire.Message{Type: pick(l, wire.TypeAssign, wire.TypeWelcome, wire.TypeBye, wire.TypeDrain, wire.TypeLeave)}
	case role == wire.RolePilot:
		return pick(l,
			&wire.Message{Type: wire.TypeReport, N: n, Phase: pick(l, "leaving", "x"), Reason: strings.Repeat("y", l.rand.IntN(2000))},
			&wire.Message{Type: wire.TypeLost, N: n, Lost: &corral.LostHost{Host: l.rand.IntN(5) - 1, Node: pick(l, "n1", "--x"), Why: "gone"}},
			&wire.Message{Type: wire.TypeCallBack, N: n, Addresses: []string{"192.0.2.1:1"}, Nonce: "0123456789abcdef"},
			&wire.Message{Type: wire.TypeHeartbeat, N: n})
	case role == wire.RoleCourier:
		return pick(l, &wire.Message{Type: wire.TypeFetch, Keys: []execution.Key{l.key()}, N: n},
			&wire.Message{Type: wire.TypeDeliver, Keys: []execution.Key{l.key()}})
	}
	return pick(l, &wire.Message{Type: wire.TypeHeartbeat, N: n}, &wire.Message{Type: wire.TypeResults, Results: l.results(nil)},
		&wire.Message{Type: wire.TypeReturned, Keys: []execution.Key{l.key()}, Reason: "no"},
		&wire.Message{Type: wire.TypeHeld, Held: l.held().Held})
}
