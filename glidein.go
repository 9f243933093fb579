package corral

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/resubmit"
)

// GlideinID identifies a provisioning request.
type GlideinID int64

// A GlideinState is derived, never set: see Glidein.Derive.
type GlideinState string

const (
	GlideinNew      GlideinState = "NEW"      // recorded; not examined yet
	GlideinWaiting  GlideinState = "WAITING"  // no attempt is alive; the reason states the cause of the wait
	GlideinActive   GlideinState = "ACTIVE"   // an attempt is alive; displays show that attempt's state
	GlideinFinished GlideinState = "FINISHED" // ended as requested
	GlideinFailed   GlideinState = "FAILED"   // ended otherwise; the reason explains why
	GlideinRemoving GlideinState = "REMOVING" // removal was requested and an attempt is still alive
	GlideinDeleted  GlideinState = "DELETED"  // tombstone
)

// GlideinStates lists all states in their order of life.
var GlideinStates = []GlideinState{GlideinNew, GlideinWaiting, GlideinActive, GlideinFinished,
	GlideinFailed, GlideinRemoving, GlideinDeleted}

// A BrokerMode specifies how the schedd of an HTCondor pool reaches a glidein's workers.
type BrokerMode string

const (
	BrokerAuto  BrokerMode = "auto"  // chosen from the pilot's probes
	BrokerNone  BrokerMode = "none"  // directly
	BrokerCCB   BrokerMode = "ccb"   // through a broker to which the worker keeps a connection
	BrokerRelay BrokerMode = "relay" // through corrald's connection with the site
)

// BrokerModes lists the values that a request may contain.
var BrokerModes = []BrokerMode{BrokerAuto, BrokerNone, BrokerCCB, BrokerRelay}

// A SlotMode specifies how a worker of an HTCondor pool offers its cpus.
type SlotMode string

const (
	SlotsPartitionable SlotMode = "partitionable" // one slot that is divided as jobs require
	SlotsStatic        SlotMode = "static"        // one slot per cpu
)

// SlotModes lists the values that a request may contain.
var SlotModes = []SlotMode{SlotsPartitionable, SlotsStatic}

// DefaultQueueTimeout is the time for which an attempt may wait in its site's queue unless the request specifies
// another time.
const DefaultQueueTimeout = Seconds(7 * 24 * time.Hour)

// An Ask is a request to end a glidein or job after its creation.
type Ask string

const (
	AskNothing Ask = ""
	AskDrain   Ask = "drain"  // finish the running tasks, then leave
	AskCancel  Ask = "cancel" // leave now
)

// exceeds reports whether an ask is stronger than the previous one. The order is nothing, drain, cancel.
func (a Ask) exceeds(before Ask) bool {
	return a != before && (before == AskNothing || a == AskCancel)
}

// A Glidein is one provisioning request: a shape at a site, and a policy for the time after its walltime.
type Glidein struct {
	ID          GlideinID `json:"id"`
	Owner       string    `json:"owner"`
	Site        SiteID    `json:"site_id"`
	SiteName    string    `json:"site"`
	Cluster     ClusterID `json:"cluster_id"`
	ClusterName string    `json:"cluster"`
	Shape
	Speed      Speed      `json:"speed,omitempty"`      // of its hosts, according to its plan
	Idle       Seconds    `json:"idle_s,omitempty"`     // 0: never leave for lack of work
	MinStay    Seconds    `json:"min_stay_s,omitempty"` // run this long before leaving for lack of work
	Overlap    Seconds    `json:"overlap_s,omitempty"`
	QueueLimit Seconds    `json:"queue_timeout_s"`  // an attempt that waits longer in the site's queue is cancelled
	Broker     BrokerMode `json:"broker,omitempty"` // for condor clusters only, like CCB and Slots
	CCB        []string   `json:"ccb,omitempty"`    // brokers, HOST:PORT; none: the pool's collector
	Slots      SlotMode   `json:"slots,omitempty"`
	BatchOptions
	NotBefore    time.Time         `json:"not_before,omitzero"`
	Follows      GlideinID         `json:"follows,omitempty"`         // the glidein from which this one takes over
	FollowsAfter Seconds           `json:"follows_after_s,omitempty"` // due this long after the start of that glidein
	FollowsWait  Seconds           `json:"follows_wait_s,omitempty"`  // assumed wait in the queue
	Resubmit     resubmit.Policy   `json:"resubmit"`
	Labels       map[string]string `json:"labels,omitempty"`
	Asked        Ask               `json:"asked,omitempty"`
	State        GlideinState      `json:"state"`
	Reason       string            `json:"reason,omitempty"`
	CreatedAt    time.Time         `json:"created_at"`
	UpdatedAt    time.Time         `json:"updated_at"`
	Attempts     []Job             `json:"attempts,omitempty"` // oldest first

	// EarlierExpired counts the expired attempts that are not among Attempts, for a glidein that was read in brief (see
	// Brief).
	EarlierExpired int `json:"-"`

	Outlook *Outlook `json:"outlook,omitempty"` // set when one glidein is requested; computed, never stored

	// Workers and cpus that are currently registered in the cluster. Only a running corrald knows these numbers; they
	// are never stored.
	WorkersNow  int     `json:"workers_now"`
	CPUsNow     int     `json:"cpus_now"`
	Unreachable *Outage `json:"unreachable,omitempty"` // nil: all workers can be reached
}

// A NextStep names the next change of a glidein, barring unforeseen events.
type NextStep string

const (
	NextSubmit  NextStep = "submit"  // an attempt is submitted, not before the given time
	NextStart   NextStep = "start"   // an attempt starts, or is cancelled at the given time
	NextLeave   NextStep = "leave"   // an attempt leaves
	NextFinish  NextStep = "finish"  // the glidein ends when its attempt leaves, at the given time at the latest
	NextNothing NextStep = "nothing" // the glidein has ended
)

// An Outlook predicts the next change of a glidein and names the rule that causes it.
type Outlook struct {
	Next    NextStep  `json:"next"`
	Attempt int       `json:"attempt,omitempty"` // number of the attempt concerned
	At      time.Time `json:"at,omitzero"`
	Why     string    `json:"reason"`
}

// LatestStart returns the time at which an attempt that has not started is given up.
func (g *Glidein) LatestStart(a Job) time.Time {
	return a.CreatedAt.Add(time.Duration(cmp.Or(g.QueueLimit, DefaultQueueTimeout)))
}

// Losses describes the hosts that the furthest live attempt has lost, with reasons. It returns "" if no host was lost.
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

// CPUsOf returns the total cpus of the workers that an attempt has or will have.
func (g *Glidein) CPUsOf(a Job) int { return max(0, g.Hosts-len(a.Lost)) * g.CPUs }

// Host returns the resources of each host. Disk is Unlimited, because only the host can measure it.
func (g Glidein) Host() Resources {
	return Resources{CPUs: g.CPUs, MemoryMiB: g.MemoryMiB, GPUs: g.GPUs, DiskMiB: Unlimited}
}

// Complete reports whether all expected workers are registered.
func (g Glidein) Complete() bool {
	a, _ := g.Furthest()
	want := g.CPUsOf(a)
	return want > 0 && g.CPUsNow >= want
}

// Terminal reports whether the glidein will never have another attempt.
func (s GlideinState) Terminal() bool {
	return s == GlideinFinished || s == GlideinFailed || s == GlideinDeleted
}

// Ask records a request to end the glidein. An ask can only become stronger. A weaker or equal ask, or an ask for a
// DELETED glidein, changes nothing and returns no entry. The caller must settle the glidein afterwards.
func (g Glidein) Ask(ask Ask, reason string, now time.Time) (Glidein, []Entry, error) {
	if g.State == GlideinDeleted || !ask.exceeds(g.Asked) {
		return g, nil, nil
	}
	g.Asked, g.UpdatedAt = ask, latest(now, g.UpdatedAt)
	return g, []Entry{{Object: ObjectGlidein, Of: int64(g.ID), Event: string(ask),
		From: string(g.State), To: string(g.State), Reason: reason}}, nil
}

// Retime sets the time at which the first attempt of a glidein is due. The due time of a glidein that follows another
// depends on the start of the other glidein, which is not known before it happens. Once an attempt has been requested,
// Retime changes nothing and returns no entry. The caller must settle the glidein afterwards.
func (g Glidein) Retime(at time.Time, reason string, now time.Time) (Glidein, []Entry, error) {
	if g.State != GlideinNew && g.State != GlideinWaiting || g.Asked != AskNothing {
		return g, nil, nil
	}
	g.NotBefore, g.UpdatedAt = at, latest(now, g.UpdatedAt)
	return g, []Entry{{Object: ObjectGlidein, Of: int64(g.ID), Event: "retime",
		From: string(g.State), To: string(g.State), Reason: reason}}, nil
}

// Settle sets the glidein's state and reason to the result of Derive. It returns no entry if both were already correct.
// The attempts may be in brief. Settle is needed after each change of an attempt or of the site, and when time alone
// changes the result: when a back-off ends, or when a planned start is due.
func (g Glidein) Settle(site SiteState, held Hold, lack Lack, now time.Time) (Glidein, []Entry) {
	if g.Current(site, held, lack, now) {
		return g, nil
	}
	from := g.State
	state, reason := g.Derive(site, held, lack, now)
	g.State, g.Reason, g.UpdatedAt = state, reason, latest(now, g.UpdatedAt)
	return g, []Entry{{Object: ObjectGlidein, Of: int64(g.ID), Event: "derive",
		From: string(from), To: string(state), Reason: reason}}
}

// Add appends an attempt.
func (g *Glidein) Add(attempt Job) { g.Attempts = append(g.Attempts, attempt) }

// Brief returns the glidein with only the attempts that affect later decisions: the live attempts, and the ended
// attempts from the last decisive attempt on. If the policy counts expired attempts, Brief keeps the number of omitted
// expired attempts.
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

// decides reports whether this attempt makes earlier attempts irrelevant, except for the number of expired attempts
// among them. This is true of an ended attempt unless it was a duplicate or its result counts as a retry.
func (j Job) decides() bool {
	return !j.Live() && j.Outcome != OutcomeDuplicate && j.result() != resubmit.Transient
}

// Next returns the policy's verdict at now on the attempts that have ended. Duplicates do not count. Of the attempts
// before the last attempt that was neither a duplicate nor a transient failure, only the number of expired attempts
// matters.
func (g *Glidein) Next(now time.Time) (v resubmit.Verdict, notBefore time.Time, why string) {
	return g.next(now, false)
}

// NextIfExpired returns the result of Next as if the live attempts expired now; it shows whether other attempts would
// follow. Attempts that began later and ended sooner also count.
func (g *Glidein) NextIfExpired(now time.Time) (v resubmit.Verdict, notBefore time.Time, why string) {
	return g.next(now, true)
}

func (g *Glidein) next(now time.Time, expire bool) (v resubmit.Verdict, notBefore time.Time, why string) {
	history, last := resubmit.History{Expired: g.EarlierExpired}, 0
	for i := range g.Attempts {
		ended := resubmit.Attempt{EndedAt: now, Result: resubmit.Expired}
		if a := &g.Attempts[i]; !a.Live() {
			if a.Outcome == OutcomeDuplicate {
				continue
			}
			ended = resubmit.Attempt{EndedAt: a.EndedAt, Result: a.result()}
		} else if !expire {
			continue
		}
		history, last = history.Then(ended), g.Attempts[i].Number
	}
	var part float64
	if last > 0 {
		part = jitter(g.ID, last)
	}
	return g.Resubmit.Next(history, now, part)
}

// result converts a pilot job's outcome to a result for the policy.
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

// Live returns the attempts that may still have processes at the site. The result must not be modified.
func (g *Glidein) Live() []Job { return liveOf(g.Attempts) }

// jitter is constant for a glidein and attempt, so that repeating a decision gives the same result.
func jitter(id GlideinID, number int) float64 {
	var buf [40]byte
	h := fnv.New32a()
	h.Write(strconv.AppendInt(append(strconv.AppendInt(buf[:0], int64(id), 10), '/'), int64(number), 10))
	return float64(h.Sum32()) / (math.MaxUint32 + 1)
}
