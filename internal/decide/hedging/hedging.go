// Package hedging decides which of two glideins that were requested at two sites for the same work is withdrawn, and
// which of them counts when the plan is revised.
//
// A label marks a pair, and is stored like the label with the pilot's number. A hedging glidein differs from other
// glideins only in this label, which every reader can see. Decisions are recomputed from the store whenever a glidein
// has changed, so nothing is lost if corrald is killed between a worker's registration and the withdrawal.
package hedging

import (
	"fmt"

	"github.com/corral-pilot/corral"
)

// Label is the key of the label of a glidein that hedges another pilot of the same plan; the label's value is that
// pilot's number.
const Label = "hedges"

// A Withdrawal is the decision to withdraw a glidein because the other glidein of its pair already has workers.
type Withdrawal struct {
	Glidein corral.GlideinID
	Ask     corral.Ask
	Reason  string
}

// Withdrawals decides which of a plan's glideins to withdraw: as soon as one glidein of a pair has workers, the other
// is withdrawn. A glidein that still waits is cancelled. A glidein that has started is drained, because its workers may
// already be present and have tasks, which the store records only a moment later. If both glideins have workers, the
// hedging one is withdrawn. A glidein that has ended or is leaving no longer causes a withdrawal, because the other
// glidein is then its replacement.
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
		w := Withdrawal{loser.ID, corral.AskCancel, fmt.Sprintf("glidein %d at site %s, requested for the "+
			"same work, came first", winner.ID, winner.SiteName)}
		if n := len(loser.Attempts); n > 0 && !loser.Attempts[n-1].StartedAt.IsZero() {
			w.Ask = corral.AskDrain
		}
		all = append(all, w)
	}
	return all
}

// Uncounted returns the glideins that revisions do not count. Only one glidein of a pair will do the work: the glidein
// that has workers or, if neither has any, the planned one unless it has ended.
func Uncounted(glideins []corral.Glidein) map[corral.GlideinID]bool {
	number := byNumber(glideins)
	all := map[corral.GlideinID]bool{}
	for _, twin := range glideins {
		hedged, ok := number[twin.Labels[Label]]
		switch {
		case twin.Labels[Label] == "" || !ok:
		case works(twin) && workersOf(hedged) == 0, hedged.State.Terminal():
			all[hedged.ID] = !hedged.State.Terminal() // an ended glidein was used, and its cost counts
		default: // a glidein with workers also costs money until its workers have left
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

// works reports whether a glidein has workers and is not about to leave.
func works(g corral.Glidein) bool { return workersOf(g) > 0 && g.Asked == corral.AskNothing }

// workersOf returns the maximum number of workers that the live attempt of a glidein has had at once.
func workersOf(g corral.Glidein) int {
	if n := len(g.Attempts); n > 0 && g.Attempts[n-1].Live() {
		return g.Attempts[n-1].Workers
	}
	return 0
}
