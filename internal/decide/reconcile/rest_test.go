package reconcile

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// Whatever happens at a site, and whatever users request, deciding, performing and answering comes to rest after a few
// rounds at any time. Limits and the pace of submissions are observed at each moment, no glidein has more attempts than
// permitted, and time alone changes nothing before Due.
func TestDecideThenApplyComesToRest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newBatch(t)
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			b.rest()
			due := Due(b.now, b.World)
			wait := rapid.SampledFrom([]time.Duration{0, time.Second, 3 * time.Second, time.Minute, time.Hour}).Draw(t, "later")
			if until := due.Sub(b.now); !due.IsZero() && rapid.Bool().Draw(t, "until due") {
				wait = until
			} else if !due.IsZero() {
				wait = min(wait, until-1)
			}
			before := kinds(Decide(b.now, b.World))
			b.now = b.now.Add(wait)
			if after := kinds(Decide(b.now, b.World)); (due.IsZero() || b.now.Before(due)) && !slices.Equal(before, after) {
				t.Fatalf("%q is decided %s later than %q, before %s", after, wait, before, due)
			}
			b.happen()
			b.wish()
		}
	})
}

// Whether the attempts at a site fail, hang in its queue, or die, and however the clock was set, there is always a time
// in the near future at which a waiting glidein may submit an attempt. No glidein blocks all others indefinitely.
func TestCircuitBreakerAlwaysTriesAgain(t *testing.T) {
	t.Parallel()
	const patience = 2 * time.Hour // after clocks were set back, holds may follow each other
	rapid.Check(t, func(t *rapid.T) {
		b := &batch{T: t, rig: readyRig(t, corral.Site{})}
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			b.now = b.now.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Minute/time.Millisecond)).Draw(t, "later")) * time.Millisecond)
			if rapid.IntRange(0, 4).Draw(t, "the clock is set back") == 0 {
				b.now = b.now.Add(-time.Duration(rapid.Int64Range(0, int64(48*time.Hour/time.Millisecond)).Draw(t, "by")) * time.Millisecond)
				b.asked = nil // the pace applies to one clock
			}
			b.must(CreateGlidein{Glidein: forever()})
			b.rest()
			b.happen()
		}
		b.must(CreateGlidein{Glidein: forever()})
		for began, last := b.now, b.lastJob; b.lastJob == last; {
			if b.now.Sub(began) > patience {
				t.Fatalf("nothing is submitted from %s to %s: %+v", began, b.now, b.Held)
			}
			b.rest()
			next := b.now.Add(time.Minute)
			if due := Due(b.now, b.World); !due.IsZero() && due.Before(next) {
				next = due
			}
			b.now = next
		}
	})
}

// forever returns a glidein that always wants another attempt.
func forever() corral.Glidein {
	return corral.Glidein{
		Shape:    corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Hour)},
		Resubmit: resubmit.Policy{Mode: resubmit.Forever, Retries: 99}}
}

// A batch is a fake batch system: it answers the performed actions, and also generates events of its jobs.
type batch struct {
	*rapid.T
	*rig
	asked []time.Time // when attempts were requested
}

func newBatch(t *rapid.T) *batch {
	limits := corral.SiteLimits{MaxQueued: rapid.IntRange(0, 5).Draw(t, "max queued"), MaxRunning: rapid.IntRange(0, 8).Draw(t, "max running")}
	b := &batch{T: t, rig: newRig(t, corral.Site{Limits: limits, PackageDigest: digest})}
	if rapid.Bool().Draw(t, "ready") {
		b.must(MoveSite{Move: corral.SiteStage})
		b.must(MoveSite{Move: corral.SiteStaged})
	}
	for range rapid.IntRange(1, 40).Draw(t, "glideins") {
		g := forever()
		g.Resubmit = rapid.SampledFrom([]resubmit.Policy{g.Resubmit, {}, {Retries: 2}, {Mode: resubmit.Times, Limit: 2, Retries: 1}}).Draw(t, "policy")
		g.Overlap = corral.Seconds(rapid.SampledFrom([]time.Duration{0, 0, 20 * time.Minute, time.Hour}).Draw(t, "overlap"))
		b.must(CreateGlidein{Glidein: g})
	}
	return b
}

// rest performs the decided actions until no more changes are recorded.
func (b *batch) rest() {
	const most = 60
	for range most {
		recorded := 0
		for _, a := range Decide(b.now, b.World) {
			entries := b.perform(a)
			if _, submits := a.(Submit); submits && len(entries) == 0 {
				continue // the world has changed since
			}
			recorded += len(entries) + b.respond(a)
			b.check()
		}
		if recorded == 0 {
			return
		}
	}
	b.Fatalf("no rest at %s after %d rounds: still %q", b.now, most, kinds(Decide(b.now, b.World)))
}

// respond answers an action at once, or not at all; refused or cancelled jobs may end.
func (b *batch) respond(a Action) (recorded int) {
	move := func(j corral.Job, e corral.JobEvent) int {
		if !b.find(j.ID).Live() {
			return 0
		}
		return len(b.must(MoveJob{j.ID, e}))
	}
	switch a := a.(type) {
	case Submit:
		if a.Kind == corral.PilotJob {
			b.asked = append(b.asked, b.now)
		}
		switch rapid.IntRange(0, 5).Draw(b.T, "answer") {
		case 0: // none
		case 1:
			return move(b.find(b.lastJob), corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeFailed, Transient: rapid.Bool().Draw(b.T, "may pass")})
		default:
			return move(b.find(b.lastJob), corral.JobEvent{Move: corral.JobSubmit})
		}
	case Resume:
		return move(a.Job, corral.JobEvent{Move: corral.JobSubmit})
	case Cancel:
		if rapid.IntRange(0, 3).Draw(b.T, "goes") > 0 {
			return move(a.Job, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeRemoved})
		}
	case Drain:
		return move(a.Job, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeDrained})
	}
	return 0
}

// happen lets some jobs start, register workers, and end.
func (b *batch) happen() {
	for _, j := range b.live() {
		if j.ID%3 == 0 && j.Kind == corral.PilotJob { // the job hangs in the queue
			continue
		}
		outcomes := []corral.Outcome{corral.OutcomeFailed, corral.OutcomeLost, corral.OutcomePreempted, corral.OutcomeExpired, corral.OutcomeRemoved, corral.OutcomeIdle}
		if j.Kind != corral.PilotJob {
			outcomes = []corral.Outcome{corral.OutcomeDone, corral.OutcomeDone, corral.OutcomeFailed, corral.OutcomeLost}
		}
		switch rapid.IntRange(0, 5).Draw(b.T, "what") {
		case 0, 1:
			if j.State != corral.JobRunning {
				b.must(MoveJob{j.ID, corral.JobEvent{Move: corral.JobStart}})
			}
			if j.Kind == corral.PilotJob && rapid.Bool().Draw(b.T, "works") {
				b.must(LeaseJob{Job: j.ID, Holder: "pilot"})
				b.must(NoteWorkers{j.ID, 1})
			}
		case 2, 3:
			o := rapid.SampledFrom(outcomes).Draw(b.T, "outcome")
			b.must(MoveJob{j.ID, corral.JobEvent{Move: corral.JobEnd, Outcome: o, Transient: o == corral.OutcomeFailed}})
		}
	}
}

// wish makes a user change a request now and then.
func (b *batch) wish() {
	if g := rapid.IntRange(0, 400).Draw(b.T, "whose"); g < len(b.Glideins) && !b.Glideins[g].State.Terminal() {
		b.must(AskGlidein{b.Glideins[g].ID, rapid.SampledFrom([]corral.Ask{corral.AskDrain, corral.AskCancel}).Draw(b.T, "ask"), "drawn"})
	}
	if move := (MoveSite{Move: corral.SiteRemove}); rapid.IntRange(0, 30).Draw(b.T, "remove") == 0 {
		_, _ = b.apply(move) // refused if it makes no sense
	}
}

// check tests the conditions that must hold at each moment.
func (b *batch) check() {
	if broken := limitBroken(b.now, b.World, b.asked); broken != "" {
		b.Fatalf("%s", broken)
	}
}

// limitBroken returns which limit of a site is exceeded: the number of attempts that wait or run there, the pace of
// requests, or the number of attempts that belong to one glidein.
func limitBroken(now time.Time, w World, asked []time.Time) string {
	var l corral.Load
	for a := range w.attempts() {
		l = l.Add(a)
	}
	if m := w.Site.Limits; m.MaxQueued > 0 && l.Queued > m.MaxQueued || m.MaxRunning > 0 && l.Queued+l.Running > m.MaxRunning {
		return fmt.Sprintf("%+v is above %+v", l, m)
	}
	lately := 0
	for _, at := range asked {
		if !at.After(now) && now.Sub(at) < SubmitWindow {
			lately++
		}
	}
	if lately > SubmitMost {
		return fmt.Sprintf("%d attempts were asked for in the %s before %s", lately, SubmitWindow, now)
	}
	for _, g := range w.Glideins {
		if n := len(g.Live()); n > 2 || n == 2 && g.Overlap == 0 {
			return fmt.Sprintf("glidein %d has %d attempts at once", g.ID, n)
		}
	}
	return ""
}
