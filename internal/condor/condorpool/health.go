package condorpool

import (
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
)

// Intervals of the daemon checks.
const (
	healthEvery = 5 * time.Second  // while attempts are live, in a pool of ours
	healthIdle  = 30 * time.Second // otherwise; each check costs the pool and us about 40 ms of processor time
	sickEvery   = time.Second      // while a daemon is missing
)

// A health records the state of a pool's daemons and decides when to check them again. A pool of ours is checked more
// often, because we can repair it by starting the master.
type health struct {
	checked time.Time // time of the last check
	sick    bool      // a daemon was missing, or other evidence of a problem was found
}

// wait returns the time from now until the next check is due. own means that the pool is ours and can be restarted,
// busy that attempts are live.
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

// diagnose describes the problem of a pool of ours, or returns "" if there is no problem. The master restarts the other
// daemons; dead means that the master itself is missing.
func diagnose(h condor.Health, err error) (wrong string, dead bool) {
	switch {
	case err != nil:
		return "the collector does not list the daemons: " + sentence(err), false
	case h.OK():
		return "", false
	case h.Master != 0:
		return "HTCondor is restarting what is missing: " + strings.ToLower(strings.Join(h.Missing, ", ")), false
	}
	return "the pool's master is not running; it is being restarted", true
}

// maxReason is the maximum length of a reason in bytes: HTCondor's messages can be long.
const maxReason = 1000

// sentence returns an error's message on one line.
func sentence(err error) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + " …"
	}
	return s
}

// told records the list of live attempts that was last sent to a pool of ours. It limits how often the pool rereads its
// configuration, however many attempts start and end.
type told struct {
	text string // the negotiator's file of live attempts; "": unknown
	at   time.Time
}

// guardEvery is the minimum interval between two rereads. A worker takes longer than that to join, so no worker has to
// wait for a reread.
const guardEvery = 500 * time.Millisecond

// wait returns the time from now until the list may be sent to the pool again.
func (t told) wait(now time.Time) time.Duration { return t.at.Add(guardEvery).Sub(now) }

// liveText returns the configuration that admits slots which name one of the attempts and have authenticated with that
// attempt's token. A slot can claim any name, but the collector writes the slot's authenticated identity into the
// slot's ad.
func liveText(live []attempt) string {
	pairs := []string{`""`} // so that the list is never empty
	for _, a := range live {
		pairs = append(pairs, classad.FormatNew(fmt.Sprintf("%d %s", a.ID, a.identity)))
	}
	const constraint = `member(strcat(CorralAttempt, " ", AuthenticatedIdentity), { %s })`
	return fmt.Sprintf("NEGOTIATOR_SLOT_CONSTRAINT = "+constraint+"\n", strings.Join(pairs, ", "))
}
