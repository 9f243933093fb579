package ensembles

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/ensemble/record"
	"github.com/corral-pilot/corral/plan/planner/rehearsal"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim/cloud"
)

var began = time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)

// three returns the worked example of three workflows, with pilots that are billed by the hour.
func three(algorithm string) Direction {
	p := rehearsal.Problem{Ensemble: plantest.Three(), Budget: 18_000_000, Deadline: 6 * time.Hour, Terms: ensemble.Hourly,
		Machines: cloud.Kind{Slots: 1, Queued: true, Ends: 6 * time.Hour, Most: 10}, Leaving: 3 * time.Second,
		Interval: 90 * time.Second, Shared: true}
	return Direction{Problem: p, Policy: rehearsal.Default(algorithm, p).Policy(p),
		Patient: algorithm == rehearsal.WADPDS}
}

// A scene is a compact notation for a sight: the standings of the workflows, and the existing pilots and runs.
type scene struct {
	at       time.Duration
	state    record.State
	standing string // one letter per workflow: waiting, deferred, rejected, begun, completed, missed
	pilots   string // one letter per pilot: queued, free, busy, told to go, over
	runs     map[corral.RunID]corral.Run
	closed   string
	steps    int
	due      time.Duration
}

var standings = map[byte]record.Standing{'w': record.Waiting, 'd': record.Deferred, 'r': record.Rejected,
	'b': record.Begun, 'c': record.Completed, 'm': record.Missed}

func (c scene) sight() Sight {
	s := Sight{Now: began.Add(c.at), Due: c.due, Runs: c.runs, Closed: c.closed}
	s.Row = record.Ensemble{ID: 7, State: c.state, CreatedAt: began, Reason: "its deadline has passed",
		Pilots: record.Pilots{CPUs: 1, Walltime: corral.Seconds(6*time.Hour + time.Minute)}, Progress: record.Progress{Steps: c.steps}}
	for k := range c.standing {
		m := record.Member{Workflow: "abc"[k : k+1], Standing: standings[c.standing[k]]}
		if c.standing[k] != 'w' && c.standing[k] != 'd' && c.standing[k] != 'r' {
			m.Run = corral.RunID(k + 1)
		}
		s.Row.Members = append(s.Row.Members, m)
	}
	for i, how := range c.pilots {
		g := corral.Glidein{ID: corral.GlideinID(i + 1), State: corral.GlideinActive,
			Shape: corral.Shape{Walltime: corral.Seconds(6*time.Hour + 57*time.Second)}}
		j := corral.Job{State: corral.JobRunning, SubmittedAt: began, StartedAt: began}
		w := corral.Worker{Glidein: g.ID, CPUs: 1, CPUsFree: 1, Connected: true}
		switch how {
		case 'q':
			j.State, j.StartedAt = corral.JobQueued, time.Time{}
		case 'b':
			w.CPUsFree, w.RunningTasks = 0, 1
		case 't':
			g.Asked = corral.AskCancel
		case 'o':
			g.State, j.State, j.EndedAt = corral.GlideinFinished, corral.JobEnded, began.Add(time.Hour)
		}
		if how == 'f' || how == 'b' {
			s.Workers = append(s.Workers, w)
		}
		g.Attempts = []corral.Job{j}
		s.Glideins = append(s.Glideins, g)
	}
	return s
}

// told returns a decision as text.
func (x Decision) told() string {
	var words []string
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	var stands strings.Builder
	for _, m := range x.Members {
		for letter, s := range standings {
			if s == m.Standing {
				stands.WriteByte(letter)
			}
		}
	}
	say("%s", stands.String())
	if len(x.Begin) > 0 {
		say("begin %v", x.Begin)
	}
	for _, walltime := range x.Start {
		say("start %s", walltime)
	}
	if len(x.Stop) > 0 {
		say("stop %v", x.Stop)
	}
	if len(x.Cancel) > 0 {
		say("cancel %v", x.Cancel)
	}
	if x.Ending != "" {
		say("ending: %s", x.Ending)
	}
	if x.Ended {
		say("ended")
	}
	return strings.Join(words, "; ")
}

func over(state corral.RunState, at time.Duration) corral.Run {
	return corral.Run{State: state, EndedAt: began.Add(at), Reason: "task t failed"}
}

// TestDecide checks the decisions about an ensemble at one check after the other.
func TestDecide(t *testing.T) {
	t.Parallel()
	going := corral.Run{State: corral.RunRunning}
	queue := corral.Run{State: corral.RunRunning, Tasks: corral.RunTasks{Ready: 2}}
	for _, tt := range []struct {
		name      string
		algorithm string
		scene
		want string
	}{
		{"all are begun at once, on as many pilots as the budget pays for", rehearsal.DPDS,
			scene{standing: "www"}, "www; begin [0 1 2]; start 6h0m57s; start 6h0m57s; start 6h0m57s"},
		{"however late the first look comes", rehearsal.DPDS,
			scene{at: time.Hour, standing: "www"}, "www; begin [0 1 2]; start 5h0m57s; start 5h0m57s; start 5h0m57s"},
		{"but once it was made, none is started anew because corrald was", rehearsal.DPDS,
			scene{at: time.Minute, standing: "bbb", pilots: "qqq", steps: 1}, "bbb"},
		{"a patient one begins nothing while no pilot is there", rehearsal.WADPDS,
			scene{at: time.Minute, standing: "www", pilots: "qqq", steps: 1}, "www"},
		{"then as many workflows as there are pilots free for them", rehearsal.WADPDS,
			scene{at: time.Minute, standing: "www", pilots: "ffq", steps: 1}, "www; begin [0 1]"},
		{"tasks that are ready come first", rehearsal.WADPDS, scene{at: time.Minute, standing: "bww", pilots: "bfq",
			runs: map[corral.RunID]corral.Run{1: queue}, steps: 1}, "bww"},
		{"what cannot end by the deadline is not begun", rehearsal.WADPDS,
			scene{at: 121 * time.Minute, standing: "www", pilots: "fff", steps: 1}, "rrw; begin [2]"},
		{"a run that ends gives others another chance", rehearsal.WADPDS, scene{at: time.Hour, standing: "bdd", pilots: "fff",
			runs: map[corral.RunID]corral.Run{1: over(corral.RunSucceeded, time.Hour)}, steps: 1, due: 2 * time.Hour},
			"cww; begin [1 2]"},
		{"what ended late is missed, and so is what failed", rehearsal.DPDS,
			scene{at: time.Hour, standing: "bbb", pilots: "bbb", runs: map[corral.RunID]corral.Run{
				1: over(corral.RunSucceeded, 6*time.Hour+time.Second), 2: over(corral.RunFailed, time.Minute), 3: going,
			}, steps: 1, due: 2 * time.Hour}, "mmb"},
		{"nothing is left to run", rehearsal.DPDS, scene{at: time.Hour, standing: "bcr", pilots: "f",
			runs: map[corral.RunID]corral.Run{1: over(corral.RunSucceeded, time.Hour)}, steps: 1},
			"ccr; ending: none of its other workflows can be completed"},
		{"all are completed", rehearsal.DPDS, scene{at: time.Hour, standing: "ccc", pilots: "f", steps: 1},
			"ccc; ending: all its workflows are completed"},
		{"the deadline is over", rehearsal.DPDS, scene{at: 6 * time.Hour, standing: "bbc", pilots: "bbb",
			runs: map[corral.RunID]corral.Run{1: going, 2: going}, steps: 1}, "bbc; ending: its deadline has passed"},
		{"then runs are cancelled and pilots go", rehearsal.DPDS, scene{at: 6 * time.Hour, state: record.Ending,
			standing: "bwd", pilots: "bfto", runs: map[corral.RunID]corral.Run{1: going}, steps: 1},
			"brr; stop [1 2]; cancel [1]"},
		{"until nothing is left", rehearsal.DPDS, scene{at: 6 * time.Hour, state: record.Ending, standing: "brr",
			pilots: "oo", runs: map[corral.RunID]corral.Run{1: over(corral.RunCancelled, 6*time.Hour)}, steps: 1},
			"mrr; ended"},
		{"pilots that have ended are replaced while the others are busy", rehearsal.DPDS,
			scene{at: time.Hour, standing: "bbb", pilots: "bbo", steps: 1}, "bbb; start 5h0m57s"},
		{"for as long as the money lasts if all are held", rehearsal.DPDS,
			scene{at: time.Hour, standing: "bbb", pilots: "ooobb", steps: 1}, "bbb; start 3h0m57s"},
		{"and not while one is idle", rehearsal.DPDS,
			scene{at: time.Hour, standing: "bbb", pilots: "bfo", steps: 1}, "bbb"},
		{"though a task that is ready will take it", rehearsal.DPDS, scene{at: time.Hour, standing: "bbb", pilots: "bfo",
			runs: map[corral.RunID]corral.Run{1: queue}, steps: 1}, "bbb; start 5h0m57s"},
		{"its site is to be removed", rehearsal.DPDS, scene{at: time.Hour, standing: "bbb", pilots: "bbb",
			closed: "its site grid is EXITING", steps: 1}, "bbb; ending: its site grid is EXITING"},
		{"a run that was removed keeps nothing open", rehearsal.DPDS, scene{at: 6 * time.Hour, state: record.Ending,
			standing: "brr", pilots: "o", steps: 1}, "mrr; ended"},
		{"one that goes still costs money", rehearsal.DPDS, scene{at: 5*time.Hour + time.Minute, standing: "bbb",
			pilots: "bbto", steps: 1}, "bbb"},
		{"without pilots and money nothing is left to do", rehearsal.DPDS, scene{at: 5 * time.Hour, standing: "bbb",
			pilots: strings.Repeat("o", 18), steps: 1}, "bbb; ending: its budget is spent: 18USD"},
	} {
		if tt.state == "" {
			tt.state = record.Running
		}
		if got := three(tt.algorithm).Decide(tt.sight()).told(); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}
