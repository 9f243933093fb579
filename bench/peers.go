package main

// Corral and its peers: the same no-op tasks on the same disk. Sides take turns as in all other measurements, and are
// measured as their users experience them: from the command, or the request, to its end. Processes that serve more than
// one workflow, such as pilots or the workers of Dask, are started before.

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/peer"
	"github.com/corral-pilot/corral/internal/service/personal"
)

// measurePeers measures Corral and its peers in turn, and publishes the result.
func (p plan) measurePeers(ctx context.Context, dir string) error {
	if err := personal.UsePrograms(p.bin); err != nil {
		return err
	}
	if err := peer.SetUp(ctx); err != nil {
		return err
	}
	m := thisMachine(dir)
	return p.onStand(ctx, dir, func(r contest) error {
		names, measured, err := r.besidePeers(ctx)
		if err != nil {
			return err
		}
		return p.publish(m, "\n\n"+peersTable(names, measured))
	})
}

// besidePeers takes the turns: Corral, Corral with the directories of all tasks kept, the bare loop, and each peer.
func (r contest) besidePeers(ctx context.Context) (names []string, measured [][]sample, err error) {
	most, err := r.warmUp(ctx)
	if err != nil {
		return nil, nil, err
	}
	document, err := independent(most)
	if err != nil {
		return nil, nil, err
	}
	names = []string{"corral", "corral, --keep-tasks", "bare loop"}
	sides := []side{
		timed(r.through(ctx, document, most, corral.RunOptions{})),
		timed(r.through(ctx, document, most, corral.RunOptions{KeepTasks: true})), r.bare(ctx, most, width),
	}
	for _, p := range peer.All() {
		names = append(names, p.Name)
		n := max(1, most/p.Share)
		sides = append(sides, func() (sample, error) {
			took, err := p.Run(ctx, r.dir, n)
			return sample{tasks: n, span: took}, err
		})
	}
	measured, err = turns(func(m [][]sample) bool {
		if done := len(m[0]); done > 0 {
			r.say("round %d, tasks/s of %s: %s", done, strings.Join(names, ", "), lastRound(m))
		}
		return len(m[0]) < r.rounds
	}, sides...)
	return names, measured, err
}

// timed measures a side from the outside.
func timed(of side) side {
	return func() (sample, error) {
		began := time.Now()
		s, err := of()
		s.span = time.Since(began)
		return s, err
	}
}

// peersTable returns the report; the first side is compared with all others.
func peersTable(names []string, measured [][]sample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "No-op tasks (/bin/true), %d wide, %d rounds, from the command to its end:\n\n",
		width, len(measured[0]))
	rows := [][]string{{"", "tasks", "tasks/s, median", "range", "corral ÷ it", "range"}}
	for i, name := range names {
		row := append([]string{name, strconv.Itoa(measured[i][0].tasks)}, rates(measured[i]).row("%.0f")...)
		rows = append(rows, append(row, ratios(measured[0], measured[i]).row("%.2f")...))
	}
	table(&b, rows)
	return b.String()
}
