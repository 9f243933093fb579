package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
)

// Limits on the answer to a made-up request. The longest documents are pages and plans.
const (
	mostOfAnError  = 16 << 10
	mostOfAnAnswer = 8 << 20
	mostOfItsTime  = 2 * time.Minute
)

// An operation is an operation of openapi.yaml, with a valid request.
type operation struct {
	id, method, path string
	query, headers   []string // documented names
	schema           *openapi3.Schema
	example          string
}

// operations returns the operations of openapi.yaml, sorted by id, so that seeds keep their meaning when others are
// added at the end.
func operations(t testing.TB) []operation {
	t.Helper()
	var all []operation
	for path, item := range openAPIDoc(t).Paths.Map() {
		for method, o := range item.Operations() {
			op := operation{id: o.OperationID, method: method, path: path, example: asked[o.OperationID].body}
			for _, p := range slices.Concat(item.Parameters, o.Parameters) {
				switch p.Value.In {
				case openapi3.ParameterInQuery:
					op.query = append(op.query, p.Value.Name)
				case openapi3.ParameterInHeader:
					op.headers = append(op.headers, p.Value.Name)
				}
			}
			if o.RequestBody != nil {
				for _, media := range o.RequestBody.Value.Content {
					op.schema = media.Schema.Value
				}
			}
			if op.id == "createToken" {
				op.example = fmt.Sprintf(`{"name": "new", "digest": %q}`, api.TokenDigest("a text"))
			}
			all = append(all, op)
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.id, b.id) })
	return all
}

// outside lists the operations that contact systems outside corrald, which may not answer.
var outside = []string{"createSite", "probeSite", "forgiveSite", "login", "siteBacklog", "siteOrphans", "settleOrphans", "glideinLog",
	"importPackage", "verifyPackage", "addMirror", "checkMirror", "removeSite", "setSite", "clusterEnv"}

// queries lists values for parameters, in addition to the fuzzer's.
var queries = []string{"1", "true", "", "-1", "0", "1000", "9223372036854775807", "1e400", "NaN", "%00", "a=b", "2026-01-01T00:00:00Z", "READY", "..%2f..", "%ff", "stdout", "csv", "day"}

var headerNames = []string{api.KeyHeader, "Authorization", "If-Match", "If-None-Match", "If-Modified-Since", "Content-Type",
	"Content-Encoding", "Content-Length", "Range", "If-Range", "Accept", "Accept-Encoding", "Last-Event-ID", "X-Forwarded-For",
	"X-Forwarded-Proto", "X-Forwarded-Host", "X-HTTP-Method-Override", "X-Request-ID", "Expect", "Transfer-Encoding", "Origin", "Cookie"}

var headerValues = []string{"", "k", "*", "bytes=0-1", "bytes=-1,0-0,5-2", "gzip", "text/html", "application/json; charset=utf-16", "9999999999999999999999",
	"-1", "Bearer", "Bearer corral_x", "127.0.0.1, ::1", "\xff", "a\tb", "DELETE", "100-continue", "chunked", "Thu, 01 Jan 1970 00:00:00 GMT"}

// A tenure is a test helper that lasts for many fuzzer inputs, each of which has its own test.
type tenure struct {
	testing.TB
	ends []func()
}

func (k *tenure) Cleanup(end func()) { k.ends = append(k.ends, end) }

func (k *tenure) TempDir() string {
	dir, err := os.MkdirTemp("", "corral-fuzz-")
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (k *tenure) Context() context.Context { return context.Background() }

func (k *tenure) end() {
	for _, end := range slices.Backward(k.ends) {
		end()
	}
	k.ends = nil
}

// A fuzzed server is recreated after a number of requests, because they remove objects that others need, and lists
// grow.
type fuzzed struct {
	*throng
	tenure *tenure
	asked  int
	sent   *bytes.Buffer // the body of the present request
}

const newAfter = 100

func (z *fuzzed) ready(t testing.TB) {
	if z.tenure != nil {
		if z.tenure.TB = t; z.asked < newAfter {
			z.asked++
			return
		}
		z.tenure.end()
	}
	z.tenure, z.asked = &tenure{TB: t}, 0
	z.throng = newThrong(z.tenure, access.Limits{Rate: access.Rate{}, MaxBody: api.MaxBody})
	z.login = asks
	z.settle(z.tenure)
	done := make(chan struct{})
	z.tenure.Cleanup(func() { close(done) })
	go func(jobs *bench) { // otherwise a run of many tasks would wait for a worker
		for {
			select {
			case <-jobs.submitted:
			case <-done:
				return
			}
		}
	}(z.bench)
}

// request returns a request for an operation.
func (z *fuzzed) request(ctx context.Context, op operation, path, query, headers, body string, d dice) *http.Request {
	if body == "" {
		body = d.body(op.example, op.schema)
	}
	target := op.path
	for i, name := range regexp.MustCompile(`\{[a-z]+\}`).FindAllString(op.path, -1) {
		value := "1"
		if parts := strings.Split(path, "|"); path != "" && i < len(parts) {
			value = parts[i]
		}
		target = strings.Replace(target, name, value, 1)
	}
	if len(op.query) > 0 {
		for range d.roll() % 4 {
			query += "&" + op.query[d.roll()%len(op.query)] + "=" + queries[d.roll()%len(queries)]
		}
	}
	z.sent = bytes.NewBufferString(body)
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", z.sent)
	r.Method, r.URL = op.method, &url.URL{Path: "/" + strings.TrimPrefix(target, "/"), RawQuery: query}
	r.RequestURI = r.URL.RequestURI()
	r.Header.Set("Content-Type", "application/json")
	for line := range strings.Lines(headers) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ":")
		r.Header.Add(name, strings.TrimSpace(value))
	}
	for range d.roll() % 3 {
		names := slices.Concat(op.headers, headerNames)
		r.Header.Add(names[d.roll()%len(names)], headerValues[d.roll()%len(headerValues)])
	}
	return r
}

// FuzzRequests: for any request, operation and caller, the answer conforms to OpenAPI and is never a defect; its size
// and time are limited. Numbers beyond the operations select paths without an operation.
func FuzzRequests(f *testing.F) {
	all := operations(f)
	for i, op := range all {
		n := uint16(i)
		for who := range uint8(4) {
			f.Add(n, who, "", "", "", "", []byte{})
		}
		f.Add(n, uint8(2), "0|0", "x=1", "Idempotency-Key: k\nIf-None-Match: *", "{}", []byte{})
		for j, name := range op.query {
			f.Add(n, uint8(2), "", name+"="+queries[j%len(queries)], "", "", []byte{})
		}
		if op.example != "" {
			f.Add(n, uint8(0), "", "", "", "", []byte{0, 0, 246, 0, 210, 9, 200, 200, 3, 4, 5, 254, 7})
		}
	}
	f.Add(uint16(60000), uint8(2), "\xf7 0", "0", "", "0", []byte{})
	for _, s := range strange {
		f.Add(uint16(60000), uint8(0), s[0], s[1], "", s[2], []byte{})
	}
	z := &fuzzed{}
	f.Cleanup(func() {
		if z.tenure != nil {
			z.tenure.end()
		}
	})
	f.Fuzz(func(t *testing.T, n uint16, who uint8, path, query, headers, body string, d []byte) {
		z.ready(t)
		op := operation{}
		if int(n) < len(all) {
			op = all[n]
		} else {
			op.method, op.path, _ = strings.Cut(path, " ")
		}
		ctx, cancel := context.WithTimeout(context.Background(), mostOfItsTime)
		defer cancel()
		r := z.request(ctx, op, path, query, headers, body, d)
		if strings.Contains(r.URL.RawQuery+z.sent.String(), "wait") { // no client waits that long
			gone, leave := context.WithTimeout(ctx, 5*time.Millisecond)
			defer leave()
			r = r.WithContext(gone)
		}
		z.answered(t, op, r, who)
		if ctx.Err() != nil {
			t.Errorf("%s took longer than %s", op.id, mostOfItsTime)
		}
	})
}

// answered sends a request and checks the answer.
func (z *fuzzed) answered(t *testing.T, op operation, r *http.Request, who uint8) {
	h := z.door
	switch who % 5 {
	case 0: // a personal corrald, which identifies the caller by its socket
		h = z.server
	case 2:
		r.Header.Set("Authorization", z.texts["ann"])
	case 3:
		r.Header.Set("Authorization", z.texts["root"])
	case 4:
		r.Header.Set("Authorization", z.texts["bob"])
	}
	if who%5 == 0 {
		h = checked(z.tenure, z.server)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	what := fmt.Sprintf("%s %s %q %v answered %d", op.id, r.Method, r.URL, r.Header, rec.Code)
	// A client that has disconnected does not read the answer.
	left := r.Context().Err() != nil && (rec.Code == http.StatusServiceUnavailable || rec.Code == http.StatusGatewayTimeout)
	excused := left || rec.Code == http.StatusServiceUnavailable && slices.Contains(outside, op.id)
	if rec.Code >= http.StatusInternalServerError && !excused {
		t.Errorf("%s: %s\n%s", what, rec.Body, lastLines(z.log.Bytes()))
	}
	if rec.Code < http.StatusBadRequest {
		if rec.Body.Len() > mostOfAnAnswer {
			t.Errorf("%s: %d bytes", what, rec.Body.Len())
		}
		return
	}
	var p api.Problem
	media := rec.Header().Get("Content-Type")
	if err := json.Unmarshal(rec.Body.Bytes(), &p); r.Method != http.MethodHead && (media != api.ProblemMediaType || err != nil || p.Status != rec.Code) {
		t.Errorf("%s: %s, %v, %.200s", what, media, err, rec.Body)
	}
	if rec.Body.Len() > mostOfAnError {
		t.Errorf("%.300s: an error of %d bytes: %.200s", what, rec.Body.Len(), rec.Body)
	}
}

func lastLines(log []byte) []byte { return log[max(0, len(log)-1000):] }

// strange lists requests that once found a defect, or nearly: method and path, query, body.
var strange = [][3]string{
	{"POST /v1/glideins", "", `{"walltime_s": 1e300, "not_before": "x", "labels": {"": null}}`},
	{"POST /v1/glideins", "", `{"hosts": 1, "hosts": [], "not_before": {}, "ccb": [[null]], "cpus": -0}`},
	{"POST /v1/sites", "", `{"name": "a", "contact": "local:", "batch": "fork", "root": "/a/../b"}`},
	{"POST /v1/clusters", "x=1", `{"name": "b", "kind": "embedded"}`},
	{"POST /v1/runs", "", `{"workflow": ` + chain + `, "options": {"clustering": "horizontal=-1"}}`},
	{"POST /v1/runs/1/cancel", "", ""},
	{"POST /v1/plans", "", `{"workflow": ` + string(fan(2, 60)) + `, "goal": {"deadline_s": 1e-9, "confidence": 0.99}, "sites": [""]}`},
	{"POST /v1/plans", "", `{"workflow": ` + string(fan(2, 60)) + `, "goal": {"budget": {"amount": 0.000001, "unit": "ch"}}, "host_cpus": 65536}`},
	{"POST /v1/plans", "", `{"workflow": ` + string(fan(1, 1e9)) + `, "goal": {"objective": "cpus", "deadline_s": 9}}`},
	{"POST /v1/plans", "", `{"workflow": ` + chain + `, "default_runtime_s": 0.0001, "goal": {"tradeoff": 1}}`},
	{"POST /v1/plans/1/provision", "", ""},
	{"POST /v1/ensembles", "", `{"name": "x", "site": "1", "budget": {"amount": 0.000001, "unit": "ch"}, "deadline_s": 1e-9, "default_runtime_s": 1, "workflows": [{"workflow_name": "", "workflow": ` + chain + `}]}`},
	{"POST /v1/ensembles", "", `{"name": "x", "budget": {"amount": 1e12, "unit": "ch"}, "deadline_s": 31622400, "most": 100000, "pilot_cpus": 65536, "error": "lognormal:3", "workflows": [{"workflow_name": "a", "workflow": ` + string(fan(2, 60)) + `}]}`},
	{"DELETE /v1/plans/1", "", ""},
	{"GET /v1/sites/local", "wait=READY&timeout_s=1e400", ""},
	{"GET /v1/glideins", "label==&after=9223372036854775807&limit=1000", ""},
	{"GET /v1/glideins/1/log", "file=../order.json&attempt=-1", ""},
	{"GET /v1/runs/1/tasks/..%2f/log", "file=stdout", ""},
	{"DELETE /v1/sites/local", "force=1", "null"},
	{"OPTIONS *", "", ""}, {"TRACE /v1/sites", "", ""}, {"CONNECT /", "", ""}, {"HEAD /v1/sites", "", ""},
}

// TestEveryOperationIsFuzzed: the fuzzer knows each route of the server and has a body for each that accepts one.
func TestEveryOperationIsFuzzed(t *testing.T) {
	t.Parallel()
	unfuzzed := start(t).server.Routes()
	for _, op := range operations(t) {
		delete(unfuzzed, op.method+" "+op.path)
		if op.schema != nil && op.example == "" {
			t.Errorf("%s takes a body, and has no example in the table asked", op.id)
		}
	}
	for route := range unfuzzed {
		t.Errorf("%s is not fuzzed", route)
	}
}

// An endless is a body that continues as long as it is read.
type endless struct {
	begins *bytes.Reader
	read   int
}

func (e *endless) Read(p []byte) (int, error) {
	n, _ := e.begins.Read(p)
	for i := n; i < len(p); i++ {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

// large lists the operations whose bodies may exceed api.MaxBody, because they contain a workflow or a profile.
var large = []string{"createRun", "dryRun", "createPlan", "createEnsemble", "saveProfile", "addTask"}

// TestEndlessBodies: no operation reads more of a body than its limit, with a token or at a personal corrald, and
// nothing of a body whose sender has no token.
func TestEndlessBodies(t *testing.T) {
	t.Parallel()
	const most = 64 << 10
	g := newThrong(t, access.Limits{MaxBody: most})
	g.settle(t)
	for _, op := range operations(t) {
		if op.method == http.MethodGet {
			continue
		}
		for who, limit := range map[string]int{"nobody": 0, "ann": most + 1, "root": most + 1, "corrald's own user": api.MaxBody + 1} {
			if limit > api.MaxBody && slices.Contains(large, op.id) {
				continue
			}
			body := &endless{begins: bytes.NewReader([]byte(op.example))}
			target := regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(op.path, "1")
			r := httptest.NewRequestWithContext(t.Context(), op.method, target, io.Reader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", g.texts[who])
			rec := httptest.NewRecorder()
			if limit > api.MaxBody {
				g.server.ServeHTTP(rec, r)
			} else {
				g.door.ServeHTTP(rec, r)
			}
			if rec.Code < 400 || rec.Code >= 500 {
				t.Errorf("%s of %s: %d", op.id, who, rec.Code)
			}
			if body.read > limit {
				t.Errorf("%s of %s: %d bytes were read, want at most %d", op.id, who, body.read, limit)
			}
		}
	}
}
