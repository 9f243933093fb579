// Package hedging decides which of two glideins, requested at two sites for the same work, is withdrawn, and on which
// of them a revision of their plan counts.
//
// A label marks a pair; the store keeps it like the pilot's number. Nothing else about such a glidein is different, and
// its label shows every reader that it hedges. A decision is made again from the store whenever a glidein has
// changed, so that nothing is lost with a corrald that is killed between a worker's registration and the withdrawal.
package hedging

import (
	"fmt"

	"github.com/corral-pilot/corral"
)

// Label is the label by which a glidein of a plan says which pilot of it it hedges: that one's number.
const Label = "hedges"

// A Withdrawal lets a glidein go because the one that it hedges, or that hedges it, has its workers.
type Withdrawal struct {
	Glidein corral.GlideinID
	Ask     corral.Ask
	Reason  string
}

// Withdrawals decides which of a plan's glideins are to go: of a pair, once workers of one have come, the other. One
// that still waits is cancelled. One that has started is drained: its workers may be there already, and have tasks, of
// which the store hears a moment later. If both have workers the one that hedges goes. One that has ended, or was asked
// to go, withdraws nothing any more: the other is its replacement then.
func Withdrawals(glideins []corral.Glidein) (all []Withdrawal) {
	number := byNumber(glideins)
	for _, twin := range glideins {
		hedged, ok := number[twin.Labels[Label]]
		if twin.Labels[Label] == "" || !ok {
			continue
		}
		winner, loser := hedged, twin
		if !works(hedged) {
			winner, loser = twin, hedged
		}
		if !works(winner) || loser.State.Terminal() || loser.Asked != corral.AskNothing {
			continue
		}
		w := Withdrawal{loser.ID, corral.AskCancel, fmt.Sprintf("glidein %d at site %s, which it was asked for "+
			"beside, came first", winner.ID, winner.SiteName)}
		if n := len(loser.Attempts); n > 0 && !loser.Attempts[n-1].StartedAt.IsZero() {
			w.Ask = corral.AskDrain
		}
		all = append(all, w)
	}
	return all
}

// Uncounted are the glideins that revisions do not count: of a pair one will work, which is the one that has its
// workers, or else the one that was planned, unless that is over.
func Uncounted(glideins []corral.Glidein) map[corral.GlideinID]bool {
	number := byNumber(glideins)
	all := map[corral.GlideinID]bool{}
	for _, twin := range glideins {
		hedged, ok := number[twin.Labels[Label]]
		switch {
		case twin.Labels[Label] == "" || !ok:
		case works(twin) && workersOf(hedged) == 0, hedged.State.Terminal():
			all[hedged.ID] = !hedged.State.Terminal() // what is over has been, and costs
		default: // and so does one that has workers, until they have gone
			all[twin.ID] = !twin.State.Terminal() && workersOf(twin) == 0
		}
	}
	return all
}

func byNumber(glideins []corral.Glidein) map[string]corral.Glidein {
	number := map[string]corral.Glidein{}
	for _, g := range glideins {
		number[g.Labels["pilot"]] = g
	}
	return number
}

// works reports whether a glidein has workers, and is not about to go.
func works(g corral.Glidein) bool { return workersOf(g) > 0 && g.Asked == corral.AskNothing }

// workersOf is how many workers the live attempt of a glidein has had at once.
func workersOf(g corral.Glidein) int {
	if n := len(g.Attempts); n > 0 && g.Attempts[n-1].Live() {
		return g.Attempts[n-1].Workers
	}
	return 0
}
