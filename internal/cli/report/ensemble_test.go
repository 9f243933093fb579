package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/report"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// The page of an ensemble shows the held and used cpus, and the state of each workflow; names in it are only text.
func TestOfEnsemble(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	f := report.EnsembleFacts{
		Ensemble: record.Ensemble{ID: 3, Name: "<night>", State: record.Ended, Reason: "its deadline has passed", CreatedAt: began,
			EndedAt: at(61), Goal: record.Goal{Budget: "0.02ch", Deadline: corral.Seconds(time.Minute)},
			Progress: record.Progress{Spent: "0.018ch", Members: []record.Member{
				{Workflow: "a", Tasks: 1, Standing: record.Completed, Run: 7},
				{Workflow: "b", Tasks: 2, Standing: record.Missed, Run: 8, Reason: "it was late"},
				{Workflow: "c", Standing: record.Rejected, Reason: "no money is left for it"}}}},
		Runs: []corral.Run{
			{ID: 7, State: corral.RunSucceeded, CreatedAt: at(1), EndedAt: at(11), Tasks: corral.RunTasks{Done: 1}},
			{ID: 8, State: corral.RunCancelled, CreatedAt: at(2), EndedAt: at(60)}},
		Tasks: map[corral.RunID][]api.TaskStatus{
			7: {{ID: "x", Worker: "one/0", StartedAt: at(1), EndedAt: at(11)}},
			8: {{ID: "y", Worker: "one/0", StartedAt: at(11), EndedAt: at(60)}, {ID: "z"}}},
		Glideins: []corral.Glidein{{
			Shape:    corral.Shape{Hosts: 1, CPUs: 1},
			Attempts: []corral.Job{{Tag: "one", StartedAt: at(0), EndedAt: at(60)}}}},
		Now: at(100),
	}
	r := report.OfEnsemble(f)
	second := corral.Seconds(time.Second)
	if r.Span != 61*second || r.Held != 60*second || r.Used != 59*second || r.PeakCPUs != 1 || len(r.Figures()) != 3 {
		t.Errorf("%s, %s held, %s used, %d cpus, %d figures", r.Span, r.Held, r.Used, r.PeakCPUs, len(r.Figures()))
	}
	if w := r.Workflows; len(w) != 3 || *w[0].Ended != 11*second || w[0].Done != 1 || w[2].Begun != nil {
		t.Errorf("workflows %+v", w)
	}
	var page bytes.Buffer
	if err := r.Write(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"&lt;night&gt;", "1 of 3 workflows", "it was late", "no money is left for it", "98 %", "0.018ch"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	f.Ensemble.State, f.Ensemble.EndedAt, f.Glideins, f.Tasks = record.Running, time.Time{}, nil, nil
	if r := report.OfEnsemble(f); r.Span != 100*second || len(r.Figures()) != 2 {
		t.Errorf("of one that goes on: %s, %d figures", r.Span, len(r.Figures()))
	}
}
