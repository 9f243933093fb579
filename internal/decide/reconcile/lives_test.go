package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/resubmit"
)

// TestLives plays whole lives, which can be read as stories in testdata/lives. The commands are:
//
//	site [max-queued=N] [max-running=N] [installed]   a new world, its site NEW; installed: it has a package
//	glidein [resubmit=P] [retries=N] [overlap=D]      requests a glidein of one host for an hour
//	now D                                             lets time pass
//	until-due                                         lets time pass until something is due
//	decide                                            performs the decided actions until there are no new ones
//	submissions accepted|refused|unanswered           the site's answer from now on; the input is the reason to refuse
//	sees JOB queued|running|ended|nothing [report=O] [transient] [killed=K]
//	credential D [carried]                            by which corrald logs in from now on: it expires D from now
//	lease JOB HOLDER, workers JOB N, waits JOB WHY    reports of the pilot and the queue
//	ask GLIDEIN drain|cancel, remove                  requests of users
//	world                                             shows the recorded state
func TestLives(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/lives", func(t *testing.T, path string) {
		l := &life{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			l.out.Reset()
			if d.Cmd == "site" {
				l.site(t, d)
			} else if command, ok := commands[d.Cmd]; ok {
				command(l, t, d)
			} else {
				d.Fatalf(t, "no command %s", d.Cmd)
			}
			return l.out.String()
		})
	})
}

// A life is a transcript while it is being played.
type life struct {
	*rig
	out     strings.Builder
	answer  string // answer to submissions
	because string // reason for refusing them
}

var commands = map[string]func(*life, *testing.T, *datadriven.TestData){
	"glidein":   (*life).create,
	"now":       (*life).pass,
	"until-due": (*life).pass,
	"decide":    (*life).decide,
	"sees":      (*life).see,
	"lease":     (*life).note,
	"workers":   (*life).note,
	"waits":     (*life).note,
	"ask":       (*life).note,
	"credential": func(l *life, t *testing.T, d *datadriven.TestData) {
		c := credential.Credential{Kind: credential.SSHCertificate, Where: "/k-cert.pub", Carried: d.HasArg("carried")}
		if c.Carried {
			c.Kind, c.Where = credential.X509Proxy, "/proxy"
		}
		c.NotAfter = l.now.Add(duration(t, d, d.CmdArgs[0].Key))
		l.Site.Credentials = []credential.Credential{c}
	},
	"remove": (*life).note,
	"world":  (*life).show,
	"submissions": func(l *life, _ *testing.T, d *datadriven.TestData) {
		l.answer, l.because = d.CmdArgs[0].Key, strings.TrimSpace(d.Input)
	},
}

func (l *life) site(t *testing.T, d *datadriven.TestData) {
	var s corral.Site
	d.MaybeScanArgs(t, "max-queued", &s.Limits.MaxQueued)
	d.MaybeScanArgs(t, "max-running", &s.Limits.MaxRunning)
	if d.HasArg("installed") {
		s.PackageDigest = digest
	}
	l.rig = newRig(t, s)
}

func (l *life) create(t *testing.T, d *datadriven.TestData) {
	g := corral.Glidein{Shape: corral.Shape{Hosts: 1, CPUs: 4, Walltime: corral.Seconds(time.Hour)}}
	policy, retries, overlap := "never", 0, "0s"
	d.MaybeScanArgs(t, "resubmit", &policy)
	d.MaybeScanArgs(t, "retries", &retries)
	d.MaybeScanArgs(t, "overlap", &overlap)
	var err error
	if g.Resubmit, err = resubmit.Parse(policy); err != nil {
		d.Fatalf(t, "%v", err)
	}
	g.Resubmit.Retries, g.Overlap = retries, corral.Seconds(duration(t, d, overlap))
	l.change(CreateGlidein{Glidein: g})
}

func duration(t *testing.T, d *datadriven.TestData, s string) time.Duration {
	took, err := time.ParseDuration(s)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return took
}

func (l *life) pass(t *testing.T, d *datadriven.TestData) {
	due := Due(l.now, l.World)
	switch {
	case d.Cmd == "now":
		l.now = l.now.Add(duration(t, d, d.CmdArgs[0].Key))
	case due.IsZero():
		d.Fatalf(t, "nothing is due")
	default:
		l.now = due.Add(time.Millisecond - 1).Truncate(time.Millisecond)
	}
	fmt.Fprintf(&l.out, "%s after the beginning\n", l.now.Sub(t0))
}

// decide performs the decided actions, and lets the site answer, until nothing changes any more.
func (l *life) decide(t *testing.T, d *datadriven.TestData) {
	for range 10 {
		changed := false
		for _, a := range Decide(l.now, l.World) {
			entries := l.perform(a)
			answer := l.submitted(a)
			if len(entries)+len(answer) > 0 {
				fmt.Fprintln(&l.out, strings.TrimRight(fmt.Sprintf("%-18s %s", l.short(a), a.Why()), " "))
				changed = true
			}
			l.tell(append(entries, answer...))
		}
		if !changed {
			return
		}
	}
	d.Fatalf(t, "no rest after:\n%s", &l.out)
}

// submitted makes the site answer a submission.
func (l *life) submitted(a Action) []corral.Entry {
	var j corral.Job
	switch a := a.(type) {
	case Submit:
		j = l.find(l.lastJob)
	case Resume:
		j = a.Job
	default:
		return nil
	}
	switch l.answer {
	case "unanswered":
		return nil
	case "refused":
		return l.must(MoveJob{j.ID, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeFailed, Transient: true, Reason: "the site refused it: " + l.because}})
	}
	return l.must(MoveJob{j.ID, corral.JobEvent{Move: corral.JobSubmit, SiteJobID: fmt.Sprint(4700 + j.ID)}})
}

// short describes an action and its object.
func (l *life) short(a Action) string {
	switch a := a.(type) {
	case Submit:
		return "submit " + calls(l.find(l.lastJob))
	case Resume:
		return "resume " + calls(a.Job)
	case Cancel:
		return "cancel " + calls(a.Job)
	case Drain:
		return "drain " + calls(a.Job)
	case Settle:
		return fmt.Sprintf("settle glidein %d", a.Glidein)
	case Retime:
		return fmt.Sprintf("retime glidein %d", a.Glidein)
	case AskGlidein:
		return fmt.Sprintf("ask glidein %d", a.Glidein)
	case MoveSite:
		return "move the site"
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", a), "reconcile."))
}

func (l *life) named(t *testing.T, d *datadriven.TestData) corral.Job {
	id, ok := l.jobs[d.CmdArgs[0].Key]
	if !ok {
		d.Fatalf(t, "no job %s", d.CmdArgs[0].Key)
	}
	return l.find(id)
}

func (l *life) see(t *testing.T, d *datadriven.TestData) {
	s := Sighting{Known: true, Phase: Phase(d.CmdArgs[1].Key)}
	if s.Phase == "nothing" {
		s = Sighting{Missing: l.now.Add(-time.Minute), Visibility: time.Second}
	}
	var outcome, killed string
	d.MaybeScanArgs(t, "report", &outcome)
	d.MaybeScanArgs(t, "killed", &killed)
	if s.Killed = Killed(killed); outcome != "" {
		s.Report = &Report{Outcome: corral.Outcome(outcome), Transient: d.HasArg("transient"), Reason: strings.TrimSpace(d.Input)}
	}
	l.tell(l.sees(l.named(t, d), s))
}

// note applies a short report of a pilot or queue, or a user's request.
func (l *life) note(t *testing.T, d *datadriven.TestData) {
	word := func(i int) string { return d.CmdArgs[i].Key }
	var n int
	switch d.Cmd {
	case "lease":
		l.change(LeaseJob{Job: l.named(t, d).ID, Holder: word(1)})
	case "workers":
		_, _ = fmt.Sscan(word(1), &n) // a missing number is 0
		l.change(NoteWorkers{l.named(t, d).ID, n})
	case "waits":
		l.change(NoteWaits{l.named(t, d).ID, word(1)})
	case "ask":
		_, _ = fmt.Sscan(word(0), &n)
		l.change(AskGlidein{corral.GlideinID(n), corral.Ask(word(1)), "a user wants it"})
	case "remove":
		l.change(MoveSite{corral.SiteRemove, "a user wants it"})
	}
}

// change makes a change and prints it, or its refusal.
func (l *life) change(c Change) {
	entries, err := l.apply(c)
	if err != nil {
		fmt.Fprintf(&l.out, "%s: %v\n", corral.KindOf(err), err)
	}
	l.tell(entries)
}

// tell prints entries of histories.
func (l *life) tell(entries []corral.Entry) {
	for _, e := range entries {
		who := fmt.Sprintf("%s %d", e.Object, e.Of)
		if e.Object == corral.ObjectSite {
			who = "site"
		}
		if e.Object == corral.ObjectJob {
			for called, id := range l.jobs {
				if int64(id) == e.Of {
					who = "job " + called
				}
			}
		}
		move := strings.TrimSpace(e.From + " → " + e.To)
		if e.From == e.To {
			move = e.To
		}
		fmt.Fprintln(&l.out, strings.TrimRight(fmt.Sprintf("  %-13s  %-8s  %-19s  %s", who, e.Event, move, e.Reason), " "))
	}
}

func (l *life) show(*testing.T, *datadriven.TestData) {
	fmt.Fprintln(&l.out, strings.TrimRight(fmt.Sprintf("site %s %s", l.Site.State, l.Site.Reason), " "))
	if !l.Held.Since.IsZero() {
		fmt.Fprintf(&l.out, "held until %s after the beginning\n", l.Held.Until.Sub(t0))
	}
	line := func(j corral.Job) {
		what := string(j.State)
		if !j.Live() {
			what = string(j.Outcome)
		}
		fmt.Fprintln(&l.out, strings.TrimRight(fmt.Sprintf("  %-10s %-10s %s", calls(j), what, j.Reason), " "))
	}
	for _, j := range l.Jobs {
		line(j)
	}
	for _, g := range l.Glideins {
		if !g.State.Terminal() {
			fmt.Fprintf(&l.out, "glidein %d %s %s\n", g.ID, g.State, g.Reason)
			for _, a := range g.Attempts {
				line(a)
			}
		}
	}
}
