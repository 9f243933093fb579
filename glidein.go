package corral

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral/resubmit"
)

// GlideinID identifies a provisioning request.
type GlideinID int64

// A GlideinState is derived, never set: see Glidein.Derive.
type GlideinState string

const (
	GlideinNew      GlideinState = "NEW"      // recorded; nothing has looked at it yet
	GlideinWaiting  GlideinState = "WAITING"  // no attempt is alive; the reason says what for
	GlideinActive   GlideinState = "ACTIVE"   // an attempt is alive; people are shown how far it is
	GlideinFinished GlideinState = "FINISHED" // over as asked
	GlideinFailed   GlideinState = "FAILED"   // over otherwise; the reason says why
	GlideinRemoving GlideinState = "REMOVING" // removal was asked for and an attempt is still alive
	GlideinDeleted  GlideinState = "DELETED"  // tombstone
)

// GlideinStates lists all states in their order of life.
var GlideinStates = []GlideinState{GlideinNew, GlideinWaiting, GlideinActive, GlideinFinished,
	GlideinFailed, GlideinRemoving, GlideinDeleted}

// A BrokerMode says how the schedd of an HTCondor pool reaches a glidein's workers.
type BrokerMode string

const (
	BrokerAuto  BrokerMode = "auto"  // as the pilot's probes say
	BrokerNone  BrokerMode = "none"  // directly
	BrokerCCB   BrokerMode = "ccb"   // by a broker to which the worker keeps a connection
	BrokerRelay BrokerMode = "relay" // through corrald's connection with the site
)

// BrokerModes lists what may be asked for.
var BrokerModes = []BrokerMode{BrokerAuto, BrokerNone, BrokerCCB, BrokerRelay}

// A SlotMode says how a worker of an HTCondor pool offers its cpus.
type SlotMode string

const (
	SlotsPartitionable SlotMode = "partitionable" // one slot that is divided as jobs need
	SlotsStatic        SlotMode = "static"        // a slot for each cpu
)

// SlotModes lists what may be asked for.
var SlotModes = []SlotMode{SlotsPartitionable, SlotsStatic}

// DefaultQueueTimeout is how long an attempt may wait in its site's queue unless something else was asked.
const DefaultQueueTimeout = Seconds(7 * 24 * time.Hour)

// An Ask is a request to a glidein or job after its creation.
type Ask string

const (
	AskNothing Ask = ""
	AskDrain   Ask = "drain"  // finish the tasks that run, then leave
	AskCancel  Ask = "cancel" // leave now
)

// exceeds reports whether an ask is more than what was asked before: it grows from nothing over drain to cancel.
func (a Ask) exceeds(before Ask) bool {
	return a != before && (before == AskNothing || a == AskCancel)
}

// A Glidein is one provisioning request: hosts × cpus at a site for a walltime, and what to do when
// that is over. A host runs one worker with CPUs cpus.
type Glidein struct {
	ID          GlideinID  `json:"id"`
	Owner       string     `json:"owner"`
	Site        SiteID     `json:"site_id"`
	SiteName    string     `json:"site"`
	Cluster     ClusterID  `json:"cluster_id"`
	ClusterName string     `json:"cluster"`
	Hosts       int        `json:"hosts"`
	CPUs        int        `json:"cpus"`           // of each host
	MemoryMiB   int        `json:"memory_mib"`     // of each host
	GPUs        int        `json:"gpus,omitempty"` // of each host
	Walltime    Seconds    `json:"walltime_s"`
	Idle        Seconds    `json:"idle_s,omitempty"` // 0: never leave for want of work
	Overlap     Seconds    `json:"overlap_s,omitempty"`
	QueueLimit  Seconds    `json:"queue_timeout_s"`  // an attempt that waits longer in the site's queue is cancelled
	Broker      BrokerMode `json:"broker,omitempty"` // condor clusters only, as the next two
	CCB         []string   `json:"ccb,omitempty"`    // brokers, HOST:PORT; none: the pool's collector
	Slots       SlotMode   `json:"slots,omitempty"`
	BatchOptions
	NotBefore    time.Time         `json:"not_before,omitzero"`
	Follows      GlideinID         `json:"follows,omitempty"`         // it takes over from that one
	FollowsAfter Seconds           `json:"follows_after_s,omitempty"` // so long after that one's start it is wanted
	FollowsWait  Seconds           `json:"follows_wait_s,omitempty"`  // with this wait in the queue
	Resubmit     resubmit.Policy   `json:"resubmit"`
	Labels       map[string]string `json:"labels,omitempty"`
	Asked        Ask               `json:"asked,omitempty"`
	State        GlideinState      `json:"state"`
	Reason       string            `json:"reason,omitempty"`
	CreatedAt    time.Time         `json:"created_at"`
	UpdatedAt    time.Time         `json:"updated_at"`
	Attempts     []Job             `json:"attempts,omitempty"` // oldest first

	// EarlierExpired is how many attempts expired that are not among Attempts, of a glidein of which only those were
	// read that matter for what follows.
	EarlierExpired int `json:"-"`

	Outlook *Outlook `json:"outlook,omitempty"` // where one glidein is asked for; worked out, never stored

	// Workers and cpus that are registered in the cluster now. Only a running corrald has them; they are never stored.
	WorkersNow  int     `json:"workers_now"`
	CPUsNow     int     `json:"cpus_now"`
	Unreachable *Outage `json:"unreachable,omitempty"` // nil: all workers are within reach
}

// A NextStep names the next change of a glidein, if nothing unforeseen happens.
type NextStep string

const (
	NextSubmit  NextStep = "submit"  // an attempt is submitted, not before the time given
	NextStart   NextStep = "start"   // an attempt starts, or is cancelled at the time given
	NextLeave   NextStep = "leave"   // an attempt leaves
	NextFinish  NextStep = "finish"  // the glidein is over, when its attempt leaves: at the time given at the latest
	NextNothing NextStep = "nothing" // the glidein is over
)

// An Outlook predicts the next change of a glidein and names the rule that causes it.
type Outlook struct {
	Next    NextStep  `json:"next"`
	Attempt int       `json:"attempt,omitempty"` // of which one
	At      time.Time `json:"at,omitzero"`
	Why     string    `json:"reason"`
}

// LatestStart is when an attempt is given up that has not started.
func (g Glidein) LatestStart(a Job) time.Time {
	return a.CreatedAt.Add(time.Duration(cmp.Or(g.QueueLimit, DefaultQueueTimeout)))
}

// Losses says which hosts the furthest live attempt does without, and why; empty if it has all.
func (g Glidein) Losses() string {
	a, _ := g.Furthest()
	if len(a.Lost) == 0 {
		return ""
	}
	said := make([]string, len(a.Lost))
	for i, l := range a.Lost {
		said[i] = l.String()
	}
	return fmt.Sprintf("%d of %d hosts work; %s", g.Hosts-len(a.Lost), g.Hosts, strings.Join(said, "; "))
}

// CPUsOf is how many cpus the workers sum to that an attempt has or will have.
func (g Glidein) CPUsOf(a Job) int { return max(0, g.Hosts-len(a.Lost)) * g.CPUs }

// Host returns the resources of each host. Disk is Unlimited, because only the host can measure it.
func (g Glidein) Host() Resources {
	return Resources{CPUs: g.CPUs, MemoryMiB: g.MemoryMiB, GPUs: g.GPUs, DiskMiB: Unlimited}
}

// Complete reports whether all workers are registered that there will be.
func (g Glidein) Complete() bool {
	a, _ := g.Furthest()
	want := g.CPUsOf(a)
	return want > 0 && g.CPUsNow >= want
}

// Terminal reports whether the glidein will never have another attempt.
func (s GlideinState) Terminal() bool {
	return s == GlideinFinished || s == GlideinFailed || s == GlideinDeleted
}

// Ask notes that the glidein shall go. An ask only grows; one that does not, or that comes once the glidein is DELETED,
// changes nothing and has no entry. The glidein must be settled after it.
func (g Glidein) Ask(ask Ask, reason string, now time.Time) (Glidein, []Entry, error) {
	if g.State == GlideinDeleted || !ask.exceeds(g.Asked) {
		return g, nil, nil
	}
	g.Asked, g.UpdatedAt = ask, latest(now, g.UpdatedAt)
	return g, []Entry{{Object: ObjectGlidein, Of: int64(g.ID), Event: string(ask),
		From: string(g.State), To: string(g.State), Reason: reason}}, nil
}

// Retime sets when the first attempt of a glidein is wanted. When one is wanted that follows another counts from that
// one's start, which is known once that one runs. It changes nothing, and has no entry, once an attempt was asked for.
// The glidein must be settled after it.
func (g Glidein) Retime(at time.Time, reason string, now time.Time) (Glidein, []Entry, error) {
	if g.State != GlideinNew && g.State != GlideinWaiting || g.Asked != AskNothing {
		return g, nil, nil
	}
	g.NotBefore, g.UpdatedAt = at, latest(now, g.UpdatedAt)
	return g, []Entry{{Object: ObjectGlidein, Of: int64(g.ID), Event: "retime",
		From: string(g.State), To: string(g.State), Reason: reason}}, nil
}

// Settle brings the glidein's state and reason to what Derive says; without an entry they are that already. Its
// attempts may be in brief. It is needed after each change of an attempt or of the site, and when time alone changes
// what Derive says: when a back-off is over, or a start that was planned for later is due.
func (g Glidein) Settle(site SiteState, held Hold, lack Lack, now time.Time) (Glidein, []Entry) {
	from := g.State
	state, reason := g.Derive(site, held, lack, now)
	if state == from && reason == g.Reason {
		return g, nil
	}
	g.State, g.Reason, g.UpdatedAt = state, reason, latest(now, g.UpdatedAt)
	return g, []Entry{{Object: ObjectGlidein, Of: int64(g.ID), Event: "derive",
		From: string(from), To: string(state), Reason: reason}}
}

// Add adds an attempt.
func (g *Glidein) Add(attempt Job) { g.Attempts = append(g.Attempts, attempt) }

// Brief returns the glidein with those of its attempts only that matter for what follows: those that are alive, and
// those that have ended from the last decisive one on. Of the others it counts how many expired, where the policy does.
func (g Glidein) Brief() Glidein {
	last := 0
	for _, a := range g.Attempts {
		if a.decides() {
			last = max(last, a.Number)
		}
	}
	var brief []Job
	for _, a := range g.Attempts {
		switch {
		case a.Live() || a.Number >= last:
			brief = append(brief, a)
		case a.Outcome == OutcomeExpired && g.Resubmit.Mode == resubmit.Times:
			g.EarlierExpired++
		}
	}
	g.Attempts = brief
	return g
}

// decides reports whether attempts before this one matter no more for what follows, but for how many of them expired:
// it has ended, and neither as a duplicate nor in a way that counts for the retries.
func (j Job) decides() bool {
	return !j.Live() && j.Outcome != OutcomeDuplicate && j.result() != resubmit.Transient
}

// Next returns what the policy says after the attempts that have ended, at now. Attempts that were duplicates do not
// count. Those before the last one that was neither a duplicate nor failed transiently matter no more, but for how
// many of them expired.
func (g Glidein) Next(now time.Time) (v resubmit.Verdict, notBefore time.Time, why string) {
	history, last := resubmit.History{Expired: g.EarlierExpired}, 0
	for _, a := range g.Attempts {
		if a.State == JobEnded && a.Outcome != OutcomeDuplicate {
			history, last = history.Then(resubmit.Attempt{EndedAt: a.EndedAt, Result: a.result()}), a.Number
		}
	}
	return g.Resubmit.Next(history, now, jitter(g.ID, last))
}

// NextIfExpired returns what Next would if the attempts that are alive expired now: whether others
// follow them. Attempts that were begun later and ended sooner have their say, too.
func (g Glidein) NextIfExpired(now time.Time) (v resubmit.Verdict, notBefore time.Time, why string) {
	g.Attempts = slices.Clone(g.Attempts)
	for i := range g.Attempts {
		if a := &g.Attempts[i]; a.Live() {
			a.State, a.Outcome, a.EndedAt = JobEnded, OutcomeExpired, now
		}
	}
	return g.Next(now)
}

// result translates a pilot job's outcome for the policy.
func (j Job) result() resubmit.Result {
	switch {
	case j.Outcome == OutcomeExpired:
		return resubmit.Expired
	case j.Outcome == OutcomeFailed && j.Failure == FailureQuota:
		return resubmit.NoRoom
	case j.Outcome == OutcomeFailed && j.Failure == FailureAuthentication:
		return resubmit.NotKnown
	case j.Outcome == OutcomeLost, j.Outcome == OutcomePreempted, j.Outcome == OutcomeFailed && j.Transient:
		return resubmit.Transient
	case j.Outcome == OutcomeFailed:
		return resubmit.Broken
	}
	return resubmit.Finished
}

// Live returns the attempts that may still have processes at the site.
func (g Glidein) Live() []Job {
	return slices.DeleteFunc(slices.Clone(g.Attempts), func(a Job) bool { return !a.Live() })
}

// Derive returns the glidein's state and its reason from what was asked, its attempts, the state of its site, whether
// that is held, what is lacking, and now. It is the only source of Glidein.State. A DELETED glidein stays so.
func (g Glidein) Derive(site SiteState, held Hold, lack Lack, now time.Time) (GlideinState, string) {
	live := g.Live()
	switch {
	case g.State == GlideinDeleted:
		return GlideinDeleted, g.Reason
	case g.Asked != AskNothing && len(live) > 0:
		return GlideinRemoving, "asked to " + string(g.Asked)
	case g.Asked != AskNothing:
		return GlideinDeleted, "removed"
	case len(live) > 0:
		a, _ := g.Furthest()
		return GlideinActive, fmt.Sprintf("attempt %d %s", a.Number, a.State)
	case g.State.Terminal(): // an old verdict stands: until=TIME must not be read again at a later now
		return g.State, g.Reason
	}
	return g.deriveWithoutAttempt(site, held, lack, now)
}

// deriveWithoutAttempt is Derive for a glidein that has no live attempt and was not asked to go.
func (g Glidein) deriveWithoutAttempt(site SiteState, held Hold, lack Lack, now time.Time) (GlideinState, string) {
	verdict, notBefore, why := g.Next(now)
	switch verdict {
	case resubmit.Finish:
		return GlideinFinished, g.lastWord(why)
	case resubmit.Fail:
		return GlideinFailed, g.lastWord(why)
	}
	switch {
	case site == SiteFailed, site == SiteRemoving, site == SiteDeleted:
		return GlideinFailed, "site is " + string(site)
	case site != SiteReady: // nor EXITING: then the glidein is about to be asked to go
		return GlideinWaiting, "site not ready"
	case lack.Final:
		return GlideinFailed, lack.Why
	case now.Before(g.NotBefore):
		return GlideinWaiting, g.notBefore()
	case now.Before(held.Until):
		return GlideinWaiting, "limit circuit breaker: " + held.Why + "; none before " + held.Until.Format(time.RFC3339)
	case lack.Why != "":
		return GlideinWaiting, lack.Why
	case now.Before(notBefore):
		return GlideinWaiting, "back-off until " + notBefore.Format(time.RFC3339)
	}
	return GlideinWaiting, "to be submitted"
}

// notBefore says until when a glidein waits, and of one that follows another for whom.
func (g Glidein) notBefore() string {
	said := "not before " + g.NotBefore.Format(time.RFC3339)
	if g.Follows != 0 {
		said += fmt.Sprintf(", to take over from glidein %d", g.Follows)
	}
	return said
}

// lastWord puts the last attempt's own reason before the rule that ended the glidein.
func (g Glidein) lastWord(rule string) string {
	if len(g.Attempts) == 0 {
		return rule
	}
	a := g.Attempts[len(g.Attempts)-1]
	word := fmt.Sprintf("attempt %d %s", a.Number, a.Outcome)
	if a.Reason != "" {
		word += ": " + a.Reason
	}
	return word + " (" + rule + ")"
}

// Furthest returns the live attempt whose state is the furthest, the later one of two; ok is false if no
// attempt is alive. It is what people are shown of an ACTIVE glidein.
func (g Glidein) Furthest() (a Job, ok bool) {
	for _, b := range g.Live() {
		if !ok || slices.Index(JobStates, b.State) >= slices.Index(JobStates, a.State) {
			a, ok = b, true
		}
	}
	return a, ok
}

// Shown returns the state that people are shown, and why the glidein is in it: that of the furthest
// attempt of an ACTIVE glidein, with its site's word while it waits and the hosts that it lost, else the glidein's own.
func (g Glidein) Shown() (state, reason string) {
	if a, ok := g.Furthest(); ok && g.State == GlideinActive {
		switch {
		case a.State == JobQueued && a.Reason != "":
			return string(a.State), g.SiteName + " says: " + a.Reason
		case a.State == JobNew: // what keeps corrald from the site, if anything does
			return string(a.State), a.Reason
		}
		return string(a.State), g.Losses()
	}
	return string(g.State), g.Reason
}

// jitter is the same for the same glidein and attempt, so that deciding twice decides the same.
func jitter(id GlideinID, number int) float64 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%d/%d", id, number)
	return float64(h.Sum32()) / (math.MaxUint32 + 1)
}
