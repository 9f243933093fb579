package central

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// A house is a door with a handler behind it that reports the caller.
type house struct {
	t    *testing.T
	db   *store.DB
	door *Door
	log  *bytes.Buffer
}

func newHouse(t *testing.T, limits access.Limits) *house {
	t.Helper()
	h := &house{t: t, db: storetest.OpenTest(t), log: &bytes.Buffer{}}
	inside := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := access.From(r.Context())
		body, err := io.ReadAll(r.Body)
		var long *http.MaxBytesError
		if errors.As(err, &long) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		w.Header().Set("Who", who.Name)
		w.Header().Set("Known", strconv.FormatBool(ok))
		w.Write(body)
	})
	h.door = NewDoor(inside, h.db, slog.New(slog.NewTextHandler(h.log, nil)), limits)
	return h
}

// token creates a token and returns its text.
func (h *house) token(k corral.Token) (string, corral.TokenID) {
	h.t.Helper()
	text := api.NewTokenText()
	k.Digest, k.Name = api.TokenDigest(text), cmp.Or(k.Name, "t")
	err := storetest.All(h.db).Write(h.t.Context(), "test", func(tx *store.Tx) (err error) {
		k, err = tx.CreateToken(k)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return text, k.ID
}

func (h *house) ask(method, path, body string, authorization ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(body))
	for _, a := range authorization {
		r.Header.Add("Authorization", a)
	}
	rec := httptest.NewRecorder()
	h.door.ServeHTTP(rec, r)
	return rec
}

// A client with a valid token is admitted as its owner, regardless of the case in which the scheme is written; all
// others get the reason for the refusal.
func TestAdmission(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Limits{})
	good, id := h.token(corral.Token{Owner: "ann", Role: corral.RoleUser, ExpiresAt: time.Now().Add(time.Hour)})
	late, _ := h.token(corral.Token{Owner: "bob", Role: corral.RoleUser, ExpiresAt: time.Now().Add(-time.Second)})
	for _, tt := range []struct {
		name   string
		header []string
		path   string
		status int
		says   string
	}{
		{"a good one", []string{"Bearer " + good}, "/v1/sites", 200, ""},
		{"in small letters", []string{"bearer " + good}, "/v1/sites", 200, ""},
		{"none", nil, "/v1/sites", 401, "Bearer TOKEN"},
		{"none, for health", nil, "/healthz", 200, ""},
		{"a bad one, for health", []string{"Bearer x"}, "/healthz", 200, ""},
		{"two", []string{"Bearer " + good, "Bearer " + good}, "/v1/sites", 401, "not Bearer"},
		{"another scheme", []string{"Basic " + good}, "/v1/sites", 401, "not Bearer"},
		{"no text", []string{"Bearer"}, "/v1/sites", 401, "not Bearer"},
		{"a long one", []string{"Bearer " + good + "x"}, "/v1/sites", 401, "not Bearer"},
		{"a digest", []string{"Bearer " + api.TokenDigest(good)}, "/v1/sites", 401, "not Bearer"},
		{"an unknown one", []string{"Bearer " + api.NewTokenText()}, "/v1/sites", 401, "does not know"},
		{"one that has expired", []string{"Bearer " + late}, "/v1/sites", 401, " expired at "},
		{"what is behind the door by somebody else", []string{"Bearer " + good}, "/metrics", 403, "ann may not"},
		{"a file", []string{"Bearer " + good}, "/../v1/sites", 403, "ann may not"},
	} {
		rec := h.ask("GET", tt.path, "", tt.header...)
		if rec.Code != tt.status || !strings.Contains(rec.Body.String(), tt.says) {
			t.Errorf("%s: %d %s", tt.name, rec.Code, rec.Body)
		}
		if rec.Code == 200 && tt.path != "/healthz" && rec.Header().Get("Who") != "ann" || rec.Code == 200 && rec.Header().Get("Known") != "true" {
			t.Errorf("%s: came in as %q", tt.name, rec.Header().Get("Who"))
		}
		if rec.Code == 401 && rec.Header().Get("WWW-Authenticate") != `Bearer realm="corral"` {
			t.Errorf("%s: WWW-Authenticate %q", tt.name, rec.Header().Get("WWW-Authenticate"))
		}
		var p api.Problem
		if rec.Code > 400 && (json.Unmarshal(rec.Body.Bytes(), &p) != nil || p.Status != rec.Code || rec.Header().Get("Content-Type") != api.ProblemMediaType) {
			t.Errorf("%s: %v is not a problem document", tt.name, rec)
		}
	}
	// A revocation takes effect at the next request.
	if err := storetest.All(h.db).Write(t.Context(), "test", func(tx *store.Tx) error { return store.Done(tx.RevokeToken(id, "")) }); err != nil {
		t.Fatal(err)
	}
	if rec := h.ask("GET", "/v1/sites", "", "Bearer "+good); rec.Code != 401 || !strings.Contains(rec.Body.String(), "revoked") {
		t.Errorf("after it was revoked: %d %s", rec.Code, rec.Body)
	}
}

// An owner's tokens share one rate. An owner who exceeds it is told when to retry and does not affect others.
func TestRate(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Limits{Rate: access.Rate{PerSecond: 0.001, Burst: 2}})
	ann, _ := h.token(corral.Token{Owner: "ann", Role: corral.RoleUser})
	other, _ := h.token(corral.Token{Owner: "ann", Name: "other", Role: corral.RoleUser})
	bob, _ := h.token(corral.Token{Owner: "bob", Role: corral.RoleUser})
	for i, want := range []int{200, 200, 429} {
		if rec := h.ask("POST", "/v1/sites", "", "Bearer "+[]string{ann, other}[i%2]); rec.Code != want {
			t.Errorf("request %d: %d %s", i, rec.Code, rec.Body)
		}
	}
	rec := h.ask("GET", "/v1/sites", "", "Bearer "+other)
	if after, err := strconv.Atoi(rec.Header().Get("Retry-After")); err != nil || after < 900 || after > 1000 {
		t.Errorf("Retry-After %q", rec.Header().Get("Retry-After"))
	}
	if !strings.Contains(rec.Body.String(), "ann's tokens together make more than 0.001 requests a second (--rate): nothing was done") {
		t.Errorf("the refusal says %s", rec.Body)
	}
	if rec := h.ask("GET", "/v1/sites", "", "Bearer "+bob); rec.Code != 200 {
		t.Errorf("bob: %d", rec.Code)
	}
	if !strings.Contains(h.log.String(), "status=429 actor=ann") {
		t.Errorf("the change that was refused has no audit line: %s", h.log)
	}
}

// An idle owner is dropped, so that the door's memory is bounded by the number of active owners.
func TestOwnersAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOwners(access.Limits{Rate: access.Rate{PerSecond: 1, Burst: 1}})
		ask := func(owner string) {
			v, err := o.enter(owner, httptest.NewRequest(http.MethodGet, "/", nil), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			v.leave()
		}
		for id := range manyUsed {
			ask(strconv.Itoa(id))
		}
		<-time.After(time.Minute)
		ask("ann")
		if len(o.used) != 1 {
			t.Errorf("%d owners are kept", len(o.used))
		}
	})
}

// inside starts a request with a token and returns once it is admitted; rest answers it. The body stays open until
// then.
func (h *house) inside(t *testing.T, token string, length int64, begin string) (rest func() *httptest.ResponseRecorder) {
	t.Helper()
	body, more := io.Pipe()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/runs", body)
	r.ContentLength = length
	r.Header.Set("Authorization", "Bearer "+token)
	rec, done := httptest.NewRecorder(), make(chan struct{})
	go func() { defer close(done); h.door.ServeHTTP(rec, r); body.Close() }()
	for _, piece := range []string{begin, ""} { // the second is read after the first has been counted
		if _, err := io.WriteString(more, piece); err != nil && !errors.Is(err, io.ErrClosedPipe) { // the request was refused
			t.Fatal(err)
		}
	}
	return func() *httptest.ResponseRecorder {
		more.Close()
		<-done
		return rec
	}
}

// The bodies of an owner's current requests count together, for all tokens and whether or not their length is known;
// finished ones and those of other owners do not count. The first one is read regardless of its length.
func TestBodiesOfAnOwner(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		h := newHouse(t, access.Limits{Bodies: 1000})
		ann, _ := h.token(corral.Token{Owner: "ann", Role: corral.RoleUser})
		other, _ := h.token(corral.Token{Owner: "ann", Name: "other", Role: corral.RoleUser})
		bob, _ := h.token(corral.Token{Owner: "bob", Role: corral.RoleUser})
		length := map[bool]int64{true: 900, false: -1}[known]
		first := h.inside(t, ann, length, strings.Repeat("x", 900))
		if rec := h.ask("POST", "/v1/runs", strings.Repeat("x", 101), "Bearer "+other); rec.Code != 429 || rec.Header().Get("Retry-After") != "1" ||
			!strings.Contains(rec.Body.String(), "of an owner (--max-bodies): nothing was done") {
			t.Errorf("beside 900 bytes: %d %s", rec.Code, rec.Body)
		}
		if rec := h.ask("POST", "/v1/runs", strings.Repeat("x", 100), "Bearer "+other); rec.Code != 200 {
			t.Errorf("100 bytes beside 900: %d %s", rec.Code, rec.Body)
		}
		if rec := h.ask("POST", "/v1/runs", strings.Repeat("x", 900), "Bearer "+bob); rec.Code != 200 {
			t.Errorf("bob: %d %s", rec.Code, rec.Body)
		}
		if rec := first(); rec.Code != 200 || rec.Body.Len() != 900 {
			t.Errorf("the first: %d, %d bytes", rec.Code, rec.Body.Len())
		}
		if rec := h.ask("POST", "/v1/runs", strings.Repeat("x", 2000), "Bearer "+other); rec.Code != 200 {
			t.Errorf("alone: %d %s", rec.Code, rec.Body)
		}
		if used := h.door.owners.used["ann"]; used != (access.Use{}) {
			t.Errorf("afterwards ann uses %+v", used)
		}
	}
}

// A body of unknown length that becomes too long for its owner ends with the reason and no longer counts.
func TestBodyThatGrowsTooLong(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Limits{Bodies: 1000})
	ann, _ := h.token(corral.Token{Owner: "ann", Role: corral.RoleUser})
	first := h.inside(t, ann, 900, "x")
	var early *access.TooMany
	h.door.next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); !errors.As(err, &early) {
			t.Errorf("the body ends with %v", err)
		}
	})
	h.inside(t, ann, -1, strings.Repeat("x", 200))()
	first()
	if used := h.door.owners.used["ann"]; used != (access.Use{}) {
		t.Errorf("afterwards ann uses %+v", used)
	}
}

// Concurrent requests are counted by owner.
func TestRequestsOfAnOwner(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Limits{Requests: 1})
	ann, _ := h.token(corral.Token{Owner: "ann", Role: corral.RoleUser})
	bob, _ := h.token(corral.Token{Owner: "bob", Role: corral.RoleUser})
	first := h.inside(t, ann, 900, "x")
	if rec := h.ask("GET", "/v1/sites", "", "Bearer "+ann); rec.Code != 429 || !strings.Contains(rec.Body.String(), "ann has reached the maximum of 1 requests in progress") {
		t.Errorf("a second request: %d %s", rec.Code, rec.Body)
	}
	if rec := h.ask("GET", "/v1/sites", "", "Bearer "+bob); rec.Code != 200 {
		t.Errorf("bob: %d", rec.Code)
	}
	first()
	if rec := h.ask("GET", "/v1/sites", "", "Bearer "+ann); rec.Code != 200 {
		t.Errorf("afterwards: %d", rec.Code)
	}
}

// The limit of a request's size is the smaller of the door's and the route's.
func TestMaxBody(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Limits{MaxBody: 10})
	ann, _ := h.token(corral.Token{Owner: "ann", Role: corral.RoleUser})
	for body, want := range map[string]int{strings.Repeat("x", 10): 200, strings.Repeat("x", 11): 413} {
		if rec := h.ask("POST", "/v1/sites", body, "Bearer "+ann); rec.Code != want {
			t.Errorf("%d bytes: %d", len(body), rec.Code)
		}
	}
}

// A client without a token cannot occupy a connection with a body that never arrives: the answer is sent at once, and
// the connection ends.
func TestBodiesOfStrangersAreNotAwaited(t *testing.T) {
	t.Parallel()
	h := newHouse(t, access.Limits{})
	s := httptest.NewServer(h.door)
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer := bufio.NewReader(conn)
	resp, err := http.ReadResponse(answer, nil)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Fatal(resp, err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	if _, err := answer.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
}

// Regardless of the header's contents, the door answers and does not admit the client.
func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{"", "Bearer ", "Bearer corral_", "bearer\tcorral_", "Bearer corral_" + strings.Repeat("A", 43), "Basic YTpi"} {
		f.Add(seed)
	}
	db := storetest.OpenTest(f)
	d := NewDoor(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { f.Error("it is let in") }), db, slog.New(slog.DiscardHandler), access.Limits{})
	f.Fuzz(func(t *testing.T, header string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/sites", nil)
		r.Header["Authorization"] = []string{header}
		rec := httptest.NewRecorder()
		d.ServeHTTP(rec, r)
		if rec.Code != http.StatusUnauthorized {
			t.Errorf("%q: %d", header, rec.Code)
		}
	})
}
