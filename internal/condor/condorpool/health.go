package condorpool

import (
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
)

// How often the daemons are asked for.
const (
	healthEvery = 5 * time.Second  // while attempts are alive, in a pool of ours
	healthIdle  = 30 * time.Second // otherwise: a question costs the pool and us some 40 ms of a processor
	sickEvery   = time.Second      // while one is missing
)

// A health is what is known of a pool's daemons, and decides when they are asked for again. A pool of ours is asked
// more often, because there we can do something: start the master.
type health struct {
	checked time.Time // when they were last asked for
	sick    bool      // one was missing, or something else says that the pool is not well
}

// wait returns how long after now the daemons are due to be asked for. own: the pool is ours, and can be started
// again; busy: attempts are alive.
func (h health) wait(now time.Time, own, busy bool) time.Duration {
	every := healthIdle
	switch {
	case h.sick && own:
		every = sickEvery
	case h.sick, own && busy:
		every = healthEvery
	}
	return h.checked.Add(every).Sub(now)
}

// diagnose says what is wrong with a pool of ours, "" if nothing is. The master starts the other daemons again; dead
// says that it is missing itself.
func diagnose(h condor.Health, err error) (wrong string, dead bool) {
	switch {
	case err != nil:
		return "the collector does not say who is there: " + sentence(err), false
	case h.OK():
		return "", false
	case h.Master != 0:
		return "HTCondor starts again what is missing: " + strings.ToLower(strings.Join(h.Missing, ", ")), false
	}
	return "the pool's master does not run; it is being started again", true
}

// maxReason is how long a reason may be, in bytes: HTCondor can be talkative.
const maxReason = 1000

// sentence is an error on one line.
func sentence(err error) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + " …"
	}
	return s
}

// told is what a pool of ours was last told of attempts. It bounds how often the pool reads its configuration again,
// however many attempts come and go.
type told struct {
	text string // the file of live attempts that the negotiator has; "": not known
	at   time.Time
}

// guardEvery is the shortest time between two readings. A worker needs longer than that to join, so none waits for it.
const guardEvery = 500 * time.Millisecond

// wait returns how long after now the pool may be told something again.
func (t told) wait(now time.Time) time.Duration { return t.at.Add(guardEvery).Sub(now) }

// liveText is the file that admits slots which say they are of one of the attempts, and have shown its token. What a
// slot says of itself anybody can say; who it is, the collector writes into its ad.
func liveText(live []attempt) string {
	pairs := []string{`""`} // no list is ever empty
	for _, a := range live {
		pairs = append(pairs, classad.FormatNew(fmt.Sprintf("%d %s", a.ID, a.identity)))
	}
	const constraint = `member(strcat(CorralAttempt, " ", AuthenticatedIdentity), { %s })`
	return fmt.Sprintf("NEGOTIATOR_SLOT_CONSTRAINT = "+constraint+"\n", strings.Join(pairs, ", "))
}
