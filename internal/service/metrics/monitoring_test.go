package metrics_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"time"
)

var (
	metricName = regexp.MustCompile(`\b(corral|process|go)_[a-z0-9_]+`)
	documented = regexp.MustCompile("(?m)^\\| `(corral_[a-z_]+)` ")
)

// A dashboard is the part of Grafana's format that the test needs.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

// Every metric that the dashboard and the alerts use exists, and docs/metrics.md lists all of ours. A real Prometheus
// in internal/e2e checks that each expression is valid and returns a result.
func TestMonitoringAsksForWhatThereIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.m.Answered("GET", "/v1/sites", 200, time.Second)
	exist := map[string]bool{}
	var ours []string
	for series := range w.scrape() {
		name, _, _ := strings.Cut(series, "{")
		exist[name] = true
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(base, "corral_") && !slices.Contains(ours, base) {
			ours = append(ours, base)
		}
	}
	var asked []string
	alerts, err := os.ReadFile("../../../monitoring/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^ *expr: (.*)$`).FindAllStringSubmatch(string(alerts), -1) {
		asked = append(asked, line[1])
	}
	text, err := os.ReadFile("../../../monitoring/dashboard.json")
	var d dashboard
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			asked = append(asked, target.Expr)
		}
	}
	if len(asked) < 40 {
		t.Errorf("only %d expressions were found", len(asked))
	}
	for _, expr := range asked {
		for _, name := range metricName.FindAllString(expr, -1) {
			if !exist[name] {
				t.Errorf("%s asks for %s, which there is not", expr, name)
			}
		}
	}
	page, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range documented.FindAllStringSubmatch(string(page), -1) {
		told = append(told, m[1])
	}
	slices.Sort(told)
	slices.Sort(ours)
	if !slices.Equal(told, ours) {
		t.Errorf("docs/metrics.md has %q, want %q", told, ours)
	}
}
