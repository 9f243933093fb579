package siteaccess

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

func TestSiteIsSurveyed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, e := w.site("here"), w.prober
	id := s.ID
	began := time.Now()
	facts, err := e.Survey(t.Context(), s)
	t.Logf("%v: %+v", time.Since(began), facts)
	if err != nil || facts.Outbound == nil || !*facts.Outbound || facts.Shared == nil || !*facts.Shared {
		t.Errorf("Survey() = %+v, %v; want a node that sees all", facts, err)
	}
	if !strings.Contains(facts.Node, s.Platform.Libc) || len(facts.Notes) > 0 || len(facts.Queues) != 1 || facts.FreeMiB == 0 {
		t.Errorf("Survey() = %+v; want this machine's", facts)
	}
	if got := w.siteNow(id).Facts; got == nil || !reflect.DeepEqual(*got, facts) {
		t.Errorf("recorded: %+v, want %+v", got, facts)
	}
	if left := w.probesLeft(s); len(left) > 0 {
		t.Errorf("left of the probe: %q", left)
	}
	before := s
	before.Account = "phys" // as it was when the survey began
	if _, err := e.Survey(t.Context(), before); corral.KindOf(err) != corral.Unavailable {
		t.Errorf("of a site whose options changed meanwhile: %v", err)
	}
	if got := w.siteNow(id).Facts; got == nil || !reflect.DeepEqual(*got, facts) {
		t.Errorf("recorded then: %+v, want what was", got)
	}
	if err := os.RemoveAll(filepath.Join(s.Root, "packages")); err != nil {
		t.Fatal(err)
	}
	facts, err = e.Survey(t.Context(), s)
	if err != nil || facts.Shared == nil || *facts.Shared || facts.Outbound != nil || !strings.Contains(strings.Join(facts.Notes, " "), "does not see "+s.Root) {
		t.Errorf("of a node without the root: %+v, %v", facts, err)
	}
	s.State = corral.SiteStaging
	if facts, err = e.Survey(t.Context(), s); err != nil || facts.Shared != nil || !strings.Contains(strings.Join(facts.Notes, " "), "STAGING") {
		t.Errorf("of a site that is not ready: %+v, %v", facts, err)
	}
	s.Contact = "local:nowhere"
	if _, err := e.Survey(t.Context(), s); err == nil {
		t.Error("Survey() of a site that nobody reaches is no error")
	}
}

func TestNodeIsCompared(t *testing.T) {
	t.Parallel()
	now := time.Now()
	site := corral.Site{Root: "/r", Platform: corral.Platform{Libc: "glibc2.36"}}
	for _, tt := range []struct {
		name     string
		node     jobfiles.Node
		outbound bool
		notes    []string
	}{
		{name: "good", node: jobfiles.Node{Libc: "glibc2.36", Reached: "tls:a:1", Now: now}, outbound: true},
		{name: "late file server", node: jobfiles.Node{Libc: "glibc2.36", Reached: "tls:a:1", Now: now.Add(-4 * time.Second)}, outbound: true},
		{name: "slow clock", node: jobfiles.Node{Libc: "glibc2.36", Reached: "tls:a:1", Now: now.Add(-90 * time.Second)}, outbound: true, notes: []string{"the clock of node n1 is -1m30s ahead"}},
		{name: "fast clock", node: jobfiles.Node{Libc: "glibc2.36", Reached: "tls:a:1", Now: now.Add(time.Hour)}, outbound: true, notes: []string{"the clock of node n1 is 59m59s ahead"}},
		{name: "no route", node: jobfiles.Node{Libc: "musl", Trouble: "tls:a:1: i/o timeout\ntls:b:1: refused", Now: now},
			notes: []string{"cannot reach corrald: tls:a:1: i/o timeout; tls:b:1: refused", "the node n1 has musl, where setup found glibc2.36"}},
	} {
		var facts corral.SiteFacts
		tt.node.Host = "n1"
		compare(tt.node, site, &facts, now, now.Add(time.Second))
		if *facts.Outbound != tt.outbound || !*facts.Shared || len(facts.Notes) != len(tt.notes) {
			t.Errorf("%s: %+v", tt.name, facts)
			continue
		}
		for i, n := range tt.notes {
			if !strings.Contains(facts.Notes[i], n) {
				t.Errorf("%s: note %q, want %q", tt.name, facts.Notes[i], n)
			}
		}
	}
}

// A node that cannot see the site's root cannot report it: its silence is the evidence.
func TestNodeIsMute(t *testing.T) {
	t.Parallel()
	mute := corral.Errorf(corral.Failed, "ended: %w", errMute)
	for _, tt := range []struct {
		name   string
		text   string
		err    error
		shared *bool
		says   string
	}{
		{"nothing", "", mute, new(bool), "worker nodes may not see it"},
		{"a greeting", "Hello\n", mute, nil, "ended"},
		{"a complaint", "", corral.Errorf(corral.Failed, "ended: no memory"), nil, "no memory"},
	} {
		var facts corral.SiteFacts
		looks := 0
		err := attendNode(t.Context(), func(context.Context) ([]byte, error) {
			if looks++; looks > 1 {
				return nil, tt.err
			}
			return []byte(tt.text), nil
		}, corral.Site{Root: "/r"}, &facts)
		if err == nil || !strings.Contains(err.Error(), tt.says) || !reflect.DeepEqual(facts.Shared, tt.shared) {
			t.Errorf("%s: %v, shared %v", tt.name, err, facts.Shared)
		}
	}
}

// Other lines in a probe's output are not an answer, nor is an incomplete line.
func TestNodeIsFound(t *testing.T) {
	t.Parallel()
	const line = `{"node":"n1","libc":"musl","now":"2026-11-22T00:00:00Z"}`
	for text, want := range map[string]bool{"": false, "Hello\n{}\n3\n": false, line: false, "Hello\n" + line + "\nbye\n": true, `{"now":"x"}` + "\n": false} {
		n, ok := nodeIn([]byte(text))
		if ok != want || ok && n.Host != "n1" {
			t.Errorf("nodeIn(%q) = %+v, %v", text, n, ok)
		}
	}
}
