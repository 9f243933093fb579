package condorworker

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/node/process"
)

// Each case is the log of a worker's daemons while the worker has an hour left, and the result: the worker stays, or
// has a reason to leave.
func TestEntry(t *testing.T) {
	t.Parallel()
	type look struct {
		after time.Duration // since the start
		log   condor.GlideinLog
	}
	asked, joined := condor.GlideinLog{Asked: true}, condor.GlideinLog{Asked: true, Joined: true}
	refused := func(times int) condor.GlideinLog {
		return condor.GlideinLog{Asked: true, Refused: "DENIED", Refusals: times}
	}
	ended := func(how string) condor.GlideinLog { return condor.GlideinLog{Asked: true, Joined: true, Ended: how} }
	for name, c := range map[string]struct {
		looks []look
		left  attempt.Left
		says  string // reason to leave; "": the worker stays
	}{
		"joins":                  {[]look{{time.Second, asked}, {time.Hour / 2, joined}}, "", ""},
		"does not ask":           {[]look{{startMost + time.Second, condor.GlideinLog{}}}, attempt.LeftUnable, "did not ask the pool at p:1 within 5m0s"},
		"asks late":              {[]look{{startMost, asked}, {startMost + joinTime, asked}}, "", ""},
		"is not answered":        {[]look{{0, asked}, {joinTime + time.Second, asked}}, attempt.LeftUnable, "did not take it in within 1m0s"},
		"is missed by its pool":  {[]look{{0, joined}, {time.Hour / 2, asked}}, "", ""},
		"is refused":             {[]look{{0, refused(1)}}, attempt.LeftRefused, "refused the token: DENIED"},
		"is refused later, once": {[]look{{0, joined}, {time.Minute, refused(1)}}, "", ""},
		"is refused later":       {[]look{{0, joined}, {time.Minute, refused(2)}}, attempt.LeftRefused, "refused the token: DENIED"},
		"startd is killed":       {[]look{{0, ended("died due to signal 9")}}, "", "its condor_startd died due to signal 9"},
		"startd ends in order":   {[]look{{0, ended("exited with status 0")}}, "", ""},
	} {
		start := time.Unix(1e9, 0)
		e := newEntry(start, start.Add(time.Hour))
		var got *process.Word
		for _, l := range c.looks {
			now := start.Add(l.after)
			e.note(&l.log, now)
			got = e.fault(&l.log, "p:1", now)
		}
		if (got != nil) != (c.says != "") || got != nil && (got.Left != c.left || !strings.Contains(got.Error, c.says)) {
			t.Errorf("%s: %+v, want %q with %q", name, got, c.left, c.says)
		}
	}
}

// A worker registers each time it enters the pool, and its time there counts from the first entry.
func TestEntryAgain(t *testing.T) {
	t.Parallel()
	start := time.Unix(1e9, 0)
	e := newEntry(start, start.Add(time.Minute))
	if e.within != 30*time.Second {
		t.Errorf("a worker that has a minute waits for %s, want half of it", e.within)
	}
	in, out := condor.GlideinLog{Asked: true, Joined: true}, condor.GlideinLog{Asked: true}
	for i, log := range []*condor.GlideinLog{&in, &in, &out, &in} {
		if got, want := e.note(log, start.Add(time.Duration(i)*time.Second)), i == 0 || i == 3; got != want {
			t.Errorf("look %d: registered %v, want %v", i, got, want)
		}
	}
	if !e.joined.Equal(start) {
		t.Errorf("it joined at %s, want %s", e.joined, start)
	}
}
