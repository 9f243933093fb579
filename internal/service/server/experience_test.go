package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow/profile"
)

// documented returns a profile for a request, of tasks called t with this runtime in seconds.
func documented(t *testing.T, run string, seconds float64) json.RawMessage {
	t.Helper()
	s := profile.Sample{Subject: profile.Subject{Transformation: "t", Level: profile.AllLevels}, Run: run, ID: "t0"}
	s.Values.Set(profile.Runtime, seconds)
	var b bytes.Buffer
	if err := must(profile.Of([]profile.Sample{s}))(t).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPlanWithProfiles: a request's profiles determine the tasks' runtimes, regardless of the workflow.
func TestPlanWithProfiles(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	in := newPlan()
	in.Goal.Deadline = corral.Seconds(time.Hour)
	in.Profiles = []api.ProfileSource{{Name: "a.json", Document: documented(t, "a", 10)},
		{Name: "b.json", Document: documented(t, "b", 20)}}
	document := documentOf(t, must(f.CreatePlan(t.Context(), in, ""))(t))
	if took := document.Schedule[0].End - document.Schedule[0].Start; took != corral.Seconds(15*time.Second) {
		t.Errorf("the first task takes %s, want the mean of the profiles, 15s", took)
	}
	if said := plan.Sources(document.Estimates); said != "5 from the profile" {
		t.Errorf("estimates: %s, want 5 from the profile", said)
	}
}

// TestPlanLearnsErrors: outcomes are drawn from the measured errors of a kind with 20 runtimes, unless the request gives
// a distribution.
func TestPlanLearnsErrors(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	p := profile.New()
	for i := range plan.LeastRuntimes {
		s := profile.Sample{Subject: profile.Subject{Transformation: "t", Level: profile.AllLevels}, Run: "a", ID: fmt.Sprint(i)}
		s.Values.Set(profile.Runtime, float64(5+10*(i%2)))
		if err := p.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	var text bytes.Buffer
	if err := p.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	in := newPlan()
	in.Goal.Deadline, in.Goal.Confidence = corral.Seconds(time.Hour), 0.5
	in.Profiles = []api.ProfileSource{{Name: "a.json", Document: text.Bytes()}}
	for given, law := range map[string]string{"": "learned from 20 runtimes of 1 kind", "lognormal:0.3": "lognormal:0.3"} {
		in.Error = given
		document := documentOf(t, must(f.CreatePlan(t.Context(), in, ""))(t))
		said := slices.ContainsFunc(document.Reasons, func(r string) bool { return strings.HasSuffix(r, "; errors: "+law) })
		if got := document.Assumed.Errors.Law(document.Assumed.Spread); got != law || !said {
			t.Errorf("--error %q: %q, reasons %q, want %q", given, got, document.Reasons, law)
		}
	}
}

// TestPlanAtASlowSite: a site whose hosts took 1.5 times as long for the same kind of tasks is planned with that
// factor, and the plan states the reason.
func TestPlanAtASlowSite(t *testing.T) {
	t.Parallel()
	f := start(t)
	site := f.readySite(t)
	p := profile.New()
	for i := range 9 {
		s := profile.Sample{Subject: profile.Subject{Transformation: "t", Level: profile.AllLevels, Host: profile.SiteHosts("hpc")},
			Run: "a", ID: fmt.Sprint(i)}
		s.Values.Set(profile.Runtime, 10)
		if i >= 6 {
			s.Host = profile.SiteHosts(site.Name)
			s.Values.Set(profile.Runtime, 15)
		}
		if err := p.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	var text bytes.Buffer
	if err := p.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	in := newPlan()
	in.Goal.Deadline = corral.Seconds(time.Hour)
	in.Profiles = []api.ProfileSource{{Name: "a.json", Document: text.Bytes()}}
	document := documentOf(t, must(f.CreatePlan(t.Context(), in, ""))(t))
	if took := document.Schedule[0].End - document.Schedule[0].Start; took != corral.Seconds(15*time.Second) {
		t.Errorf("the first task takes %s, want 1.5 × the 10s of the other hosts, and not the mean", took)
	}
	want := "at site " + site.Name + " tasks are assumed to need 1.50 × their estimates, as learned from 1 kind that ran elsewhere, too"
	if !slices.Contains(document.Reasons, want) {
		t.Errorf("reasons %q, want %q among them", document.Reasons, want)
	}
}

// TestProfilesThatAreRefused: the error names each mistake.
func TestProfilesThatAreRefused(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	one := api.ProfileSource{Name: "a.json", Document: documented(t, "a", 10)}
	for _, tc := range []struct {
		name, says string
		profiles   []api.ProfileSource
		kind       corral.Kind
	}{
		{"unknown library", "it has broadband, cybershake,", []api.ProfileSource{{Name: "library:joy"}}, corral.NotFound},
		{"of other tasks", "t is one of its kinds", []api.ProfileSource{{Name: "library:sipht"}}, corral.Invalid},
		{"nor one that is kept", "no profile x", []api.ProfileSource{{Name: "x"}}, corral.NotFound},
		{"two sources", "must not have a document", []api.ProfileSource{{Name: "run:1", Document: one.Document}}, corral.Invalid},
		{"twice", "given twice", []api.ProfileSource{one, one}, corral.Invalid},
		{"the same run twice", `run "a" is in both`,
			[]api.ProfileSource{one, {Name: "b.json", Document: one.Document}}, corral.Invalid},
		{"no name", "the name is missing", []api.ProfileSource{{Document: one.Document}}, corral.Invalid},
		{"junk", "j.json", []api.ProfileSource{{Name: "j.json", Document: json.RawMessage(`{"joy": 1}`)}}, corral.Invalid},
	} {
		in := newPlan()
		in.Profiles = tc.profiles
		_, err := f.CreatePlan(t.Context(), in, "")
		if err == nil || corral.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want kind %v and %q", tc.name, err, tc.kind, tc.says)
		}
	}
}

// runFan runs a workflow of two tasks that take no time.
func runFan(t *testing.T, f *fixture) corral.Run {
	t.Helper()
	r := must(f.CreateRun(t.Context(), api.NewRun{Workflow: fan(1, 0), WorkflowName: "fan.json"}, ""))(t)
	for range 2 {
		f.bench.end(t, <-f.bench.submitted, execution.Done)
	}
	r = must(f.WaitRun(t.Context(), r.ID, time.Minute))(t)
	if r.State != corral.RunSucceeded {
		t.Fatalf("run %+v", r)
	}
	return r
}

// TestPlanLearns: estimates come from the owner's earlier runs of such a workflow rather than from the workflow, as long
// as the runs' directories exist, unless the request excludes them. A measured runtime of 0 is also an estimate.
func TestPlanLearns(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	in := newPlan()
	in.Workflow = fan(3, 0)
	_, err := f.CreatePlan(t.Context(), in, "")
	wantKind(t, "before the first run", err, corral.Unsatisfiable, "task t0")

	r := runFan(t, f)
	document := documentOf(t, must(f.CreatePlan(t.Context(), in, ""))(t))
	want := []plan.Estimates{{Source: plan.Measured, Count: 4, Runs: []corral.RunID{r.ID}}}
	if diff := cmp.Diff(want, document.Estimates); diff != "" {
		t.Errorf("estimates (-want +got):\n%s", diff)
	}
	known := newPlan()
	for _, tc := range []struct {
		name     string
		without  bool
		profiles []api.ProfileSource
		takes    corral.Seconds
	}{
		{"measured here", false, nil, 0},
		{"without measurements", true, nil, corral.Seconds(10 * time.Minute)},
		{"the run's profile", true, []api.ProfileSource{{Name: fmt.Sprintf("run:%d", r.ID)}}, 0},
	} {
		known.NoLearn, known.Profiles = tc.without, tc.profiles
		document = documentOf(t, must(f.CreatePlan(t.Context(), known, ""))(t))
		if took := document.Schedule[0].End - document.Schedule[0].Start; took != tc.takes {
			t.Errorf("%s: a task takes %s, want %s", tc.name, took, tc.takes)
		}
	}
	known.Profiles[0].Name = "run:99"
	_, err = f.CreatePlan(t.Context(), known, "")
	wantKind(t, "profile of an unknown run", err, corral.NotFound, "profiles")
	known.Profiles[0].Name = "run:last"
	_, err = f.CreatePlan(t.Context(), known, "")
	wantKind(t, "profile of no run", err, corral.Invalid, "profiles")

	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	_, err = f.CreatePlan(t.Context(), in, "")
	wantKind(t, "after the run's directory is gone", err, corral.Unsatisfiable, "task t0")
}

// TestRunAsPlanned: the tasks of a run with a plan's label have the plan's estimates, so that workers, reports and
// revisions use the same values; a plan of other tasks does not affect them.
func TestRunAsPlanned(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	in := newPlan()
	in.Workflow, in.Goal = fan(1, 0), plan.Goal{}
	in.Profiles = []api.ProfileSource{{Name: "a.json", Document: documented(t, "a", 20)}}
	made := must(f.CreatePlan(t.Context(), in, ""))(t)
	must(f.ProvisionPlan(t.Context(), made.ID))(t)
	for _, c := range []struct {
		name     string
		workflow json.RawMessage
		labels   map[string]string
		want     time.Duration
	}{
		{"of the plan", fan(1, 0), map[string]string{"plan": fmt.Sprint(made.ID)}, 20 * time.Second},
		{"with estimates of its own", fan(1, 7), map[string]string{"plan": fmt.Sprint(made.ID)}, 20 * time.Second},
		{"of other tasks", fan(2, 7), map[string]string{"plan": fmt.Sprint(made.ID)}, 7 * time.Second},
		{"of no plan", fan(1, 0), nil, time.Minute},
	} {
		must(f.CreateRun(t.Context(), api.NewRun{Workflow: c.workflow, WorkflowName: "fan.json", Labels: c.labels}, ""))(t)
		if job := <-f.bench.submitted; job.Estimate() != c.want {
			t.Errorf("a run %s: its first task is estimated to take %s, want %s", c.name, job.Estimate(), c.want)
		}
	}
}
