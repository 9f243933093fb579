package events

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// A world is a hub on a real store, behind a real server, with the real client.
type world struct {
	*testing.T
	*api.Client
	db      *store.DB
	hub     *Hub
	url     string
	site    corral.Site
	cluster corral.Cluster
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, db: storetest.OpenTest(t)}
	lg := slog.New(slog.DiscardHandler)
	w.hub = NewHub(lg, w.db)
	life, stop := context.WithCancelCause(t.Context())
	a := &rest.Adapter{Log: lg, DB: w.db, Life: life, Registered: func() <-chan struct{} { return nil }}
	s := httptest.NewServer(rest.NewRouter(lg, rest.Pace{}, w.hub.Routes(a)))
	t.Cleanup(s.Close)
	t.Cleanup(func() { stop(rest.ErrStopping) })
	w.url = s.URL
	var err error
	if w.Client, err = api.New(s.URL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Client.Close)
	w.write(func(tx *store.Tx) (err error) {
		w.site, err = tx.CreateSite(corral.Site{Name: "hpc", Owner: "ann", Contact: "local:", Batch: "fork", Root: "/r"})
		if err != nil {
			return err
		}
		w.cluster, err = tx.CreateCluster(corral.Cluster{Name: "default", Owner: "ann", Kind: corral.Embedded})
		return err
	})
	return w
}

func (w *world) write(fn func(*store.Tx) error) {
	w.Helper()
	if err := storetest.All(w.db).Write(w.Context(), "ann", fn); err != nil {
		w.Fatal(err)
	}
}

func (w *world) newRun() (r corral.Run) {
	w.Helper()
	w.write(func(tx *store.Tx) (err error) {
		r, err = tx.CreateRun(corral.Run{Owner: "ann", Cluster: w.cluster.ID, Workflow: "fold", Dir: fmt.Sprintf("/runs/%d", time.Now().UnixNano()),
			Tasks: corral.RunTasks{Total: 9, Ready: 9}})
		return err
	})
	return r
}

func (w *world) newGlidein() (g corral.Glidein) {
	w.Helper()
	w.write(func(tx *store.Tx) (err error) {
		g, err = tx.CreateGlidein(corral.Glidein{Owner: "ann", Site: w.site.ID, Cluster: w.cluster.ID,
			Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Hour)}})
		return err
	})
	return g
}

func (w *world) progress(r corral.Run, done int) {
	w.Helper()
	w.write(func(tx *store.Tx) error {
		_, err := tx.SetRun(r.ID, corral.RunTasks{Total: 9, Done: done, Ready: 9 - done}, nil)
		return err
	})
}

// listen returns the events after the given one as they arrive, until the test ends or stop is called.
func (w *world) listen(after int64) (events <-chan api.Event, stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	come, ended := make(chan api.Event, 100), make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.Events(ctx, after, func(e api.Event) error { come <- e; return nil })
	}()
	stop = func() { cancel(); <-ended }
	w.Cleanup(stop)
	return come, stop
}

// await returns the first event for which ok holds.
func (w *world) await(events <-chan api.Event, what string, ok func(api.Event) bool) api.Event {
	w.Helper()
	end := time.NewTimer(2 * time.Minute)
	defer end.Stop()
	for {
		select {
		case e := <-events:
			if ok(e) {
				return e
			}
		case <-end.C:
			w.Fatalf("no event: %s", what)
		}
	}
}

func kind(k string) func(api.Event) bool { return func(e api.Event) bool { return e.Kind == k } }

func runDone(done int) func(api.Event) bool {
	return func(e api.Event) bool {
		var r corral.Run
		return e.Kind == "run" && json.Unmarshal(e.Data, &r) == nil && r.Tasks.Done == done
	}
}

// A listener gets an event for each kind of object that changes, even for changes without history entries.
func TestChangesAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events, _ := w.listen(0)
	if e := w.await(events, "the beginning", func(api.Event) bool { return true }); e.Kind != api.EventReady || e.ID == 0 {
		t.Fatalf("the first event is %+v", e)
	}
	g := w.newGlidein()
	e := w.await(events, "a glidein", kind("glidein"))
	var got corral.Glidein
	if err := json.Unmarshal(e.Data, &got); err != nil || got.ID != g.ID || got.Owner != "ann" {
		t.Errorf("told %s (%v), want glidein %d", e.Data, err, g.ID)
	}
	r := w.newRun()
	for done := range 9 {
		w.progress(r, done+1)
	}
	w.await(events, "the run's last counts", runDone(9))
	w.write(func(tx *store.Tx) error { _, err := tx.MoveSite(w.site.ID, corral.SiteStage, "begin"); return err })
	w.await(events, "the site", kind("site"))
}

// A client that reconnects gets the changes since its last event, once for each object, and then continues.
func TestResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.newRun()
	events, stop := w.listen(0)
	last := w.await(events, "the beginning", kind(api.EventReady)).ID
	stop()
	for range 3 {
		w.newGlidein()
	}
	w.progress(r, 4) // without a history entry
	events, stop = w.listen(last)
	told := map[string]int{}
	e := w.await(events, "the last of what was missed", func(e api.Event) bool { told[e.Kind]++; return e.ID != 0 })
	if told["glidein"] != 3 || told["run"] != 1 || e.ID <= last {
		t.Errorf("notified of %v up to %d, want three glideins and the run, and more than %d", told, e.ID, last)
	}
	w.progress(r, 5)
	w.await(events, "what came next", runDone(5))
	stop()
	events, _ = w.listen(e.ID)
	w.await(events, "nothing but the run that goes on", runDone(5))
}

// A client whose last event is from another database, or too old, starts over.
func TestReset(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events, stop := w.listen(1 << 40)
	if e := w.await(events, "any", func(api.Event) bool { return true }); e.Kind != api.EventReset {
		t.Errorf("of another database: %+v", e)
	}
	stop()
	w.write(func(tx *store.Tx) error {
		for range mostMissed + 1 {
			if err := tx.Log(corral.ObjectSite, int64(w.site.ID), "note", ""); err != nil {
				return err
			}
		}
		return nil
	})
	events, _ = w.listen(1)
	e := w.await(events, "any", func(api.Event) bool { return true })
	if e.Kind != api.EventReset || e.ID <= mostMissed {
		t.Errorf("after too much: %+v", e)
	}
	w.newGlidein()
	w.await(events, "what came next", kind("glidein"))
}

// A client that does not read is dropped when it has no room left, and delays nothing.
func TestSlowClientIsDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow, err := w.hub.join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.hub.leave(slow)
	quick, err := w.hub.join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.hub.leave(quick)
	for i := range room + 5 {
		w.hub.publish([]event{anew(api.EventReset, int64(i+1))})
		if got := <-quick.batches; got[0].ID != int64(i+1) {
			t.Fatalf("the quick client got %d after %d", got[0].ID, i)
		}
	}
	n := 0
	for range slow.batches {
		n++
	}
	if n != room {
		t.Errorf("the slow client got %d batches, want %d and then the end", n, room)
	}
}

// The goroutine ends with the last client and restarts with the next.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		events, stop := w.listen(0)
		w.await(events, "the beginning", kind(api.EventReady))
		w.newGlidein()
		w.await(events, "a glidein", kind("glidein"))
		w.hub.mu.Lock()
		done := w.hub.done
		w.hub.mu.Unlock()
		stop()
		select {
		case <-done:
		case <-time.After(2 * time.Minute):
			t.Fatal("it still runs")
		}
	}
}

// The browsers' header takes precedence over their original query; both are validated.
func TestLastEventID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	get := func(query, header string) (int, string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/v1/events"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			req.Header.Set(api.LastEventHeader, header)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(body)
		}
		lines := bufio.NewScanner(resp.Body)
		lines.Scan()
		lines.Scan()
		return resp.StatusCode, lines.Text()
	}
	for _, tt := range []struct {
		query, header string
		status        int
		line          string
	}{
		{"", "", 200, "event: ready"},
		{"?after=1099511627776", "", 200, "event: reset"},
		{"?after=0", "1099511627776", 200, "event: reset"},
		{"?after=-1", "", 400, ""},
		{"", "x", 400, ""},
		{"", "-1", 400, ""},
		{"?since=1", "", 400, ""},
	} {
		status, line := get(tt.query, tt.header)
		if status != tt.status || tt.line != "" && line != tt.line {
			t.Errorf("%q, header %q: %d %s, want %d %s", tt.query, tt.header, status, line, tt.status, tt.line)
		}
	}
}
