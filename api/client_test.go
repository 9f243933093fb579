package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

// fast shortens the client's waits between repetitions.
func fast(t *testing.T, server string) *Client {
	t.Helper()
	c, err := New(server)
	if err != nil {
		t.Fatal(err)
	}
	c.http.RetryWaitMin, c.http.RetryWaitMax = time.Millisecond, time.Millisecond
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return fast(t, s.URL)
}

func answer(w http.ResponseWriter, status int, v any) {
	if p, ok := v.(*Problem); ok {
		w.Header().Set("Content-Type", ProblemMediaType)
		status = p.Status
	}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

// hangUp closes the connection without an answer after reading the request.
func hangUp(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	panic(http.ErrAbortHandler)
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "unix:", "corrald", "ftp://host", "http://", "http://%zz"} {
		if _, err := New(bad); corral.KindOf(err) != corral.Invalid {
			t.Errorf("New(%q) = %v, want an Invalid error", bad, err)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, 200, Health{Status: "ok", Version: r.URL.Path})
	}))
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	got, err := fast(t, "unix:"+path).Health(t.Context())
	if want := (Health{Status: "ok", Version: "/readyz"}); err != nil || got != want {
		t.Errorf("Health() = %v, %v, want %v", got, err, want)
	}
}

// TestRepetition checks that a request that receives no answer, or the answer 503, is repeated with the same key and
// body.
func TestRepetition(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	seen := make(chan string, 10)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- r.Header.Get(KeyHeader) + " " + string(body)
		switch tries.Add(1) {
		case 1:
			answer(w, 0, ProblemOf(corral.Errorf(corral.Unavailable, "starting")))
		case 2:
			panic(http.ErrAbortHandler)
		default:
			answer(w, http.StatusCreated, corral.Glidein{ID: 7})
		}
	})
	got, err := c.CreateGlidein(t.Context(), NewGlidein{Site: "local", Shape: corral.Shape{Hosts: 2}}, "")
	if err != nil || got.ID != 7 {
		t.Fatalf("CreateGlidein() = %v, %v, want glidein 7", got, err)
	}
	first := <-seen
	if strings.HasPrefix(first, " ") || !strings.Contains(first, `"hosts":2`) {
		t.Errorf("sent %q, want a key and the request", first)
	}
	for range 2 {
		if again := <-seen; again != first {
			t.Errorf("repeated as %q, first %q", again, first)
		}
	}
}

func TestRefusalIsNotRepeated(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		tries.Add(1)
		answer(w, 0, ProblemOf(corral.ErrorAt(corral.Invalid, "hosts", "0 is too few")))
	})
	_, err := c.CreateGlidein(t.Context(), NewGlidein{}, "k")
	var p *Problem
	if !errors.As(err, &p) || p.Place != "hosts" || corral.KindOf(err) != corral.Invalid || tries.Load() != 1 {
		t.Errorf("error %v after %d tries, want the server's problem after 1", err, tries.Load())
	}
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	nobody := "unix:" + filepath.Join(t.TempDir(), "nobody")
	refusing := httptest.NewServer(nil)
	refusing.Close()
	hanging := httptest.NewServer(http.HandlerFunc(hangUp))
	t.Cleanup(hanging.Close)
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 0, ProblemOf(corral.Errorf(corral.Unavailable, "stopping")))
	}))
	t.Cleanup(busy.Close)
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "bad gateway", http.StatusBadGateway)
	}))
	t.Cleanup(foreign.Close)

	for _, tc := range []struct {
		name, server string
		read, change corral.Kind
	}{
		{"no socket", nobody, corral.Unavailable, corral.Unavailable},
		{"refused", refusing.URL, corral.Unavailable, corral.Unavailable},
		{"hung up", hanging.URL, corral.Unavailable, corral.Unknown},
		{"503", busy.URL, corral.Unavailable, corral.Unavailable},
		{"not corrald", foreign.URL, corral.Unavailable, corral.Unknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := fast(t, tc.server)
			if _, err := c.Site(t.Context(), "local"); corral.KindOf(err) != tc.read {
				t.Errorf("read: %v (%s), want %s", err, corral.KindOf(err), tc.read)
			}
			if _, err := c.CreateSite(t.Context(), NewSite{}, ""); corral.KindOf(err) != tc.change {
				t.Errorf("change: %v (%s), want %s", err, corral.KindOf(err), tc.change)
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	_, err := c.RemoveGlidein(ctx, 1, true)
	if !errors.Is(err, context.Canceled) || corral.KindOf(err) != corral.Unknown {
		t.Errorf("error %v (%s), want a cancelled, unknown one", err, corral.KindOf(err))
	}
}

func TestListFollowsPages(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got, want := r.URL.Query()["label"], []string{"a=1", "b=2"}; !cmp.Equal(got, want) {
			t.Errorf("label = %v, want %v", got, want)
		}
		switch after := r.URL.Query().Get("after"); after {
		case "":
			answer(w, 200, List[corral.Run]{Items: []corral.Run{{ID: 1}, {ID: 2}}, Next: "2"})
		case "2":
			answer(w, 200, List[corral.Run]{Items: []corral.Run{{ID: 3}}})
		default:
			t.Errorf("after = %q", after)
		}
	})
	runs, err := c.Runs(t.Context(), Filter{Labels: map[string]string{"b": "2", "a": "1"}})
	if err != nil || len(runs) != 3 || runs[2].ID != 3 {
		t.Errorf("Runs() = %v, %v, want runs 1 to 3", runs, err)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	waiting := corral.Glidein{ID: 1, State: corral.GlideinWaiting, Reason: "site not ready",
		Shape: corral.Shape{Hosts: 2, CPUs: 1}}
	up := corral.Glidein{ID: 1, State: corral.GlideinActive, Shape: corral.Shape{Hosts: 2, CPUs: 1}, CPUsNow: 2}
	failed := corral.Glidein{ID: 1, State: corral.GlideinFailed, Reason: "no package",
		Shape: corral.Shape{Hosts: 2, CPUs: 1}}
	for _, tc := range []struct {
		name    string
		answers []corral.Glidein
		kind    corral.Kind
		message string
	}{
		{"comes up", []corral.Glidein{waiting, waiting, up}, "", ""},
		{"fails", []corral.Glidein{waiting, failed}, corral.Failed, "glidein 1 is FAILED (no package) and will not get workers any more"},
		{"too late", []corral.Glidein{waiting}, corral.Timeout, "glidein 1 is WAITING (site not ready), without all of its workers, after 50ms"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				i := min(int(asked.Add(1)), len(tc.answers)) - 1
				answer(w, 200, tc.answers[i])
			})
			got, err := c.WaitGlidein(t.Context(), 1, UntilWorkers, 50*time.Millisecond*timeFactor(tc.kind))
			if corral.KindOf(err) != tc.kind || err != nil && err.Error() != tc.message {
				t.Errorf("error %v, want kind %q, %q", err, tc.kind, tc.message)
			}
			if want := tc.answers[len(tc.answers)-1]; !cmp.Equal(got, want) {
				t.Errorf("glidein %+v, want %+v", got, want)
			}
		})
	}
}

// timeFactor returns a factor that gives requests enough time unless they must time out.
func timeFactor(kind corral.Kind) time.Duration {
	if kind == corral.Timeout {
		return 1
	}
	return 3600
}

func TestWaitRun(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("wait"); got != "SUCCEEDED,FAILED,STALLED,CANCELLED,DELETED" {
			t.Errorf("wait = %q", got)
		}
		answer(w, 200, corral.Run{ID: 4, State: corral.RunStalled})
	})
	if r, err := c.WaitRun(t.Context(), 4, 0); err != nil || r.State != corral.RunStalled {
		t.Errorf("WaitRun() = %v, %v, want the stalled run", r, err)
	}
}

func TestParseUntil(t *testing.T) {
	t.Parallel()
	if got, err := ParseUntil("ACTIVE,workers", corral.GlideinStates, UntilWorkers); err != nil || len(got) != 2 {
		t.Errorf("ParseUntil() = %v, %v", got, err)
	}
	for _, bad := range []string{"", "active", "READY,", "workers"} {
		if _, err := ParseUntil(bad, corral.SiteStates); corral.KindOf(err) != corral.Invalid {
			t.Errorf("ParseUntil(%q) = %v, want an Invalid error", bad, err)
		}
	}
}

// TestWorkflowKeepsItsLines checks that a document arrives unchanged, because corrald's messages name its lines.
func TestWorkflowKeepsItsLines(t *testing.T) {
	t.Parallel()
	document := "{\n\t\"name\" : \"x\"\n}"
	var body string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		answer(w, http.StatusCreated, corral.Run{ID: 1})
	})
	r := NewRun{Workflow: json.RawMessage(document), WorkflowName: `odd"workflow":0.json`, Labels: map[string]string{"workflow": "0"}}
	if _, err := c.CreateRun(t.Context(), r, ""); err != nil {
		t.Fatal(err)
	}
	var got NewRun
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("request (-sent +arrived):\n%s", diff)
	}
}

func TestJunkWorkflow(t *testing.T) {
	t.Parallel()
	c, err := New("unix:/nowhere")
	if err != nil {
		t.Fatal(err)
	}
	for document, place := range map[string]string{
		"":                "w.json:1:",
		"{\n\"a\": 1,\n}": "w.json:3:",
		"{} {}":           "w.json:1:",
		strings.Repeat("\n", 9) + strings.Repeat("junk", 1<<20): "w.json:10:",
	} {
		_, err := c.CreateRun(t.Context(), NewRun{Workflow: json.RawMessage(document), WorkflowName: "w.json"}, "")
		if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(fmt.Sprint(err), place) {
			t.Errorf("CreateRun(%.10q) = %v, want an Invalid error at %s", document, err, place)
		}
	}
}

// A document longer than corrald accepts is not sent.
func TestTooLongWorkflow(t *testing.T) {
	t.Parallel()
	c, err := New("unix:/nowhere")
	if err != nil {
		t.Fatal(err)
	}
	document := make([]byte, MaxRunBody+1) // never touched, it takes no memory
	const want = "w.json: the workflow has 268435457 bytes, but a request may have at most 268435456: split it"
	if _, err = c.CreateRun(t.Context(), NewRun{Workflow: document, WorkflowName: "w.json"}, ""); err == nil || err.Error() != want {
		t.Errorf("CreateRun = %v, want %s", err, want)
	}
}

// The cursor of a list is found without decoding the items, and is empty if the list has none.
func TestNextOf(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		`{"items":[{"id":"a]"}],"next":"7"}`:     "7",
		`{"items":[{"id":["b"]}]}` + "\n":        "",
		`{"items": [], "next": "a b"}`:           "a b",
		`{"next":"before","items":[]}`:           "",
		`{"items":[{"next":"x"}],"other":"y"}`:   "",
		`not JSON],"next":"1`:                    "",
		`{"items":[1,2],"next":"9","more":null}`: "9",
		"":                                       "",
	} {
		if got := nextOf([]byte(list)); got != want {
			t.Errorf("nextOf(%s) = %q, want %q", list, got, want)
		}
	}
}
