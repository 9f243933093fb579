package corral_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

var update = flag.Bool("update", false, "write docs/states.md anew")

const statesFile = "docs/states.md"

// TestStatesPage keeps docs/states.md equal to the tables that the code obeys.
func TestStatesPage(t *testing.T) {
	var b strings.Builder
	fmt.Fprint(&b, pageHead)
	fmt.Fprint(&b, "\n## Site\n\n")
	drawMoves(&b, corral.SiteNew, corral.SiteMoves)
	fmt.Fprint(&b, "\n## Cluster\n\nAn embedded cluster is READY from the start, and removed at once.\n\n")
	drawMoves(&b, corral.ClusterStarting, corral.ClusterMoves)
	fmt.Fprint(&b, "\n## Job\n\nSetup, pilot and cleanup jobs have the same states; a pilot job is an attempt of its glidein.\n\n")
	drawMoves(&b, corral.JobNew, corral.JobMoves)
	fmt.Fprint(&b, "\n## Run\n\n")
	drawMoves(&b, corral.RunRunning, corral.RunMoves)
	fmt.Fprint(&b, "\n## Plan\n\n")
	drawMoves(&b, corral.PlanReady, corral.PlanMoves)
	fmt.Fprint(&b, "\n## Ensemble\n\n")
	drawMoves(&b, record.Running, record.Moves)
	fmt.Fprint(&b, "\n## Owner\n\nAn owner without a record is ACTIVE.\n\n")
	drawMoves(&b, corral.OwnerActive, corral.OwnerMoves)
	fmt.Fprint(&b, glideinHead)
	drawDerivations(&b)

	if *update {
		if err := os.WriteFile(statesFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(statesFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("%s differs from the tables; run go test -run StatesPage -update . (-tables +page):\n%s", statesFile, diff)
	}
}

const pageHead = `# States

Written by ` + "`go test -run StatesPage -update .`" + ` from transition.go and Glidein.Derive: do not edit.

Sites, clusters, jobs, runs, plans, ensembles and owners change their state only by a move of the tables below; every other move is refused,
and the database has the same lists as a second fence. Each change leaves a row in the object's history.
What each state means stands beside its constant in site.go, cluster.go, job.go, run.go, plan.go, ensemble/record, account/owner.go and glidein.go.
`

const glideinHead = `
## Glidein

A glidein's state is not moved: it is computed, each time it is looked at, from what was asked, its
attempts, the state of its site, the site's circuit breaker, what its next attempt lacks (its cluster's
pool, or a package at the site) and the time. Each row is a call of Glidein.Derive and what it returned.

`

// drawMoves writes the moves of a table as a diagram and as a Markdown table.
func drawMoves[S, E ~string](b *strings.Builder, first S, moves corral.Table[S, E]) {
	fmt.Fprintf(b, "```mermaid\nstateDiagram-v2\n    [*] --> %s\n", first)
	for _, m := range moves {
		for _, from := range m.From {
			fmt.Fprintf(b, "    %s --> %s: %s\n", from, m.To, m.Event)
		}
	}
	for _, last := range lastStates(moves) {
		fmt.Fprintf(b, "    %s --> [*]\n", last)
	}
	fmt.Fprint(b, "```\n\n| move | from | to | happens when |\n|---|---|---|---|\n")
	for _, m := range moves {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", m.Event, joined(m.From), m.To, m.Means)
	}
}

// lastStates returns the states that no move leaves.
func lastStates[S, E ~string](moves corral.Table[S, E]) []S {
	left := map[S]bool{}
	for _, m := range moves {
		for _, from := range m.From {
			left[from] = true
		}
	}
	var last []S
	for _, m := range moves {
		if !left[m.To] && !slices.Contains(last, m.To) {
			last = append(last, m.To)
		}
	}
	return last
}

func joined[S ~string](states []S) string {
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

func drawDerivations(b *strings.Builder) {
	fmt.Fprint(b, "| asked | attempts, oldest first | site | else | state | reason |\n|---|---|---|---|---|---|\n")
	for _, d := range derivations {
		g := d.glidein()
		state, reason := g.Derive(d.site, d.held, d.lack, noon)
		fmt.Fprintf(b, "| %s | %s | %s | %s | **%s** | %s |\n",
			orDash(string(g.Asked)), d.attemptNames(), d.site, d.conditions(), state, reason)
	}
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
