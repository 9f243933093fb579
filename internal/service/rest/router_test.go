package rest

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// answered sends GET target to a router with the route, and returns the problem in the answer and the log.
func answered(t *testing.T, r Route, target string) (api.Problem, string) {
	t.Helper()
	var log bytes.Buffer
	rt := NewRouter(slog.New(slog.NewTextHandler(&log, nil)), Pace{}, []Route{r})
	rec := httptest.NewRecorder()
	rt.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
	var p api.Problem
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || p.Status != rec.Code {
		t.Fatalf("%s: %d %s, want a problem", target, rec.Code, rec.Body)
	}
	return p, log.String()
}

// A panic is answered like any internal error, whose text appears only in the log.
func TestPanicsAreLoggedNotShown(t *testing.T) {
	t.Parallel()
	p, log := answered(t, Get("/v1/panic", func(*Call) error { panic("a secret") }), "/v1/panic")
	if p.Status != http.StatusInternalServerError || p.Kind != corral.Internal || strings.Contains(p.Detail, "secret") {
		t.Errorf("a panic was answered with %+v", p)
	}
	if !strings.Contains(log, "a secret") || !strings.Contains(log, "goroutine") {
		t.Errorf("log has no panic with its stack: %s", log)
	}
}

// A query is validated before the route is called.
func TestUnknownParametersDoNotReachARoute(t *testing.T) {
	t.Parallel()
	r := Get("/v1/things", func(*Call) error { panic("it was asked") }, "limit")
	if p, _ := answered(t, r, "/v1/things?limit=1&order=up"); p.Status != http.StatusBadRequest || p.Place != "order" {
		t.Errorf("an unknown parameter: %+v, want it refused", p)
	}
}
