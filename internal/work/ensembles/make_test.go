package ensembles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble/record"
	"github.com/corral-pilot/corral/plan/planner/rehearsal"
)

// sleeping returns a workflow of independent tasks that each take the given number of seconds.
func sleeping(name string, seconds float64, tasks int) json.RawMessage {
	var spec, run []string
	for i := range tasks {
		spec = append(spec, fmt.Sprintf(`{"name": "s", "id": "t%d", "parents": [], "children": []}`, i))
		run = append(run, fmt.Sprintf(`{"id": "t%d", "runtimeInSeconds": %g, "command": {"program": "sleep"}}`, i, seconds))
	}
	list := func(all []string) (text string) {
		for i, x := range all {
			if i > 0 {
				text += ","
			}
			text += x
		}
		return text
	}
	return json.RawMessage(fmt.Sprintf(`{"name": %q, "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [%s]},
		"execution": {"tasks": [%s]}}}`, name, list(spec), list(run)))
}

func asked(change func(*api.NewEnsemble)) api.NewEnsemble {
	in := api.NewEnsemble{Name: "night", Budget: cost.Amount{Money: 1_000_000, Unit: "ch"}, Algorithm: rehearsal.DPDS,
		Deadline: corral.Seconds(time.Hour), Workflows: []api.NewMember{
			{WorkflowName: "a", Workflow: sleeping("a", 60, 3)}, {WorkflowName: "b", Workflow: sleeping("b", 30, 2)}}}
	if change != nil {
		change(&in)
	}
	return in
}

// here is a site that consists of one machine.
var here = provision.Facts{Machine: corral.SiteQueue{CPUs: 8, MemoryMiB: 8192},
	Site: corral.Site{Name: "local", Contact: "local:", Batch: corral.ForkBatch, State: corral.SiteReady}}

// A request is converted to pilots of its site that last until the deadline, runs in order of priority, and a choice
// from which the same policy can be recreated.
func TestDraft(t *testing.T) {
	t.Parallel()
	x, err := Draft(t.Context(), asked(nil), here, began)
	if err != nil {
		t.Fatal(err)
	}
	p := x.Row.Pilots
	if p.Most != 8 || p.CPUs != 1 || time.Duration(p.Walltime) != 61*time.Minute || p.Interval != corral.Seconds(36*time.Second) {
		t.Errorf("pilots %+v", p)
	}
	if string(x.Row.Choice) != `{"algorithm":"dpds","machines":1}` || x.Row.Spent != "0ch" {
		t.Errorf("choice %s, spent %s", x.Row.Choice, x.Row.Spent)
	}
	if m := x.Row.Members; m[0].Workflow != "a" || m[0].Tasks != 3 || m[0].Runtime != corral.Seconds(3*time.Minute) {
		t.Errorf("members %+v", m)
	}
	if a, b := x.Runs[0].Options, x.Runs[1].Options; a.Priority != 2 || b.Priority != 1 || a.Stall != corral.Seconds(2*time.Hour) {
		t.Errorf("options %+v %+v", a, b)
	}
	shelf := Shelf(t.TempDir())
	if err := shelf.Put(&x); err != nil {
		t.Fatal(err)
	}
	d, err := shelf.direction(t.Context(), x.Row)
	if err != nil || d.Patient || d.Problem.Machines.Ends != 0 || len(d.Problem.Ensemble) != 2 {
		t.Errorf("direction %+v: %v", d, err)
	}
	if err := shelf.Remove(x.Row.Files); err != nil {
		t.Error(err)
	}
	if _, err := shelf.direction(t.Context(), x.Row); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was removed is still there: %v", err)
	}
	x.Row.State = record.Ending
	if d, err := shelf.direction(t.Context(), x.Row); err != nil || d.Problem.Terms.Price != 100 {
		t.Errorf("to end an ensemble takes no workflows: %+v %v", d.Problem.Terms, err)
	}
}

// The workflows of a static plan are first, and the workflows that it omits are last.
func TestPlannedWorkflowsComeFirst(t *testing.T) {
	t.Parallel()
	x, err := Draft(t.Context(), asked(func(in *api.NewEnsemble) {
		in.Algorithm, in.Budget.Money = rehearsal.SPSS, 20_000 // 72 s
	}), here, began)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := x.Runs[0].Options.Priority, x.Runs[1].Options.Priority; a != 1 || b != 2 {
		t.Errorf("priorities %d and %d, and only b can be paid", a, b)
	}
}

// Pilots that are requested until the deadline last until then, whatever part of their walltime they reserve for their
// end: a static plan is possible for any deadline.
func TestPilotsLastUntilTheDeadline(t *testing.T) {
	t.Parallel()
	for _, deadline := range []time.Duration{20 * time.Second, 38 * time.Second, 40*time.Second + time.Millisecond,
		10 * time.Minute, 19 * time.Minute, 20 * time.Minute, 6 * time.Hour} {
		x, err := Draft(t.Context(), asked(func(in *api.NewEnsemble) {
			in.Algorithm, in.Deadline = rehearsal.SPSS, corral.Seconds(deadline)
		}), here, began)
		if err != nil {
			t.Errorf("%s: %v", deadline, err)
		} else if more := time.Duration(x.Row.Pilots.Walltime) - deadline; more > time.Minute+time.Second {
			t.Errorf("%s: pilots have %s, which is %s more", deadline, x.Row.Pilots.Walltime, more)
		}
	}
}

// Errors about a request name its place.
func TestDraftRefuses(t *testing.T) {
	t.Parallel()
	hourly := here
	hourly.Site.Price, hourly.Site.Billing = "2EUR/host-hour", "1h"
	limited := here
	limited.Ledger.Balance = new(cost.Money)
	*limited.Ledger.Balance = 900_000
	for _, tt := range []struct {
		name   string
		facts  provision.Facts
		change func(*api.NewEnsemble)
		want   string
	}{
		{"algorithm", here, func(in *api.NewEnsemble) { in.Algorithm = "magic" },
			`algorithm: "magic" is none of ["rehearsal" "spss" "wa-dpds" "dpds" "spds"]`},
		{"cpus", here, func(in *api.NewEnsemble) { in.CPUs = 9 },
			"site: local takes no pilots of 9 cpus now: see `corral site show local`"},
		{"unit", hourly, func(*api.NewEnsemble) {},
			"budget: 1ch is in ch, but pilots at site local cost EUR: use the same unit for both"},
		{"error", here, func(in *api.NewEnsemble) { in.Error = "5" },
			`error: "5" must be 0, uniform:SHARE with a share of at most 1, or lognormal:S, transformation:S or host:S with S of at most 3`},
		{"spss and short pilots", here, func(in *api.NewEnsemble) {
			in.Algorithm, in.Walltime = rehearsal.SPSS, corral.Seconds(10*time.Minute)
		}, "algorithm: spss plans pilots that are held until the deadline, and at site local they have 10m0s: use another"},
		{"spss and pilots of several cpus", here, func(in *api.NewEnsemble) { in.Algorithm, in.CPUs = rehearsal.SPSS, 2 },
			"algorithm: spss plans pilots of one cpu: use another for those of 2"},
		{"more than is left of the site's allocation", limited, func(*api.NewEnsemble) {},
			"budget: 0.9ch are left of the allocation at site local, and 1ch are requested"},
		{"more memory than the site has", here, func(in *api.NewEnsemble) { in.MemoryMiB = 9000 },
			"memory_mib: 1 hosts with 9000 MiB each; this machine, which all of them are, has 8192 MiB"},
		{"a task that fits no pilot", here, func(in *api.NewEnsemble) {
			in.Workflows[1].Workflow = json.RawMessage(strings.Replace(string(sleeping("b", 30, 2)),
				`"runtimeInSeconds": 30`, `"runtimeInSeconds": 30, "coreCount": 2`, 1))
		}, "b: task t0 needs 2 cpus, and pilots of the ensemble have 1 cpu, 1024 MiB of memory: request more with --cpus or --memory"},
		{"a workflow without tasks", here, func(in *api.NewEnsemble) { in.Workflows[1].Workflow = sleeping("b", 1, 0) },
			""},
		{"no JSON", here, func(in *api.NewEnsemble) { in.Workflows[1].Workflow = json.RawMessage(`{"name": 1}`) }, ""},
	} {
		_, err := Draft(t.Context(), asked(tt.change), tt.facts, began)
		if kind := corral.KindOf(err); kind != corral.Invalid && kind != corral.Unsatisfiable {
			t.Errorf("%s: %v", tt.name, err)
		} else if tt.want != "" {
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
		}
	}
}

// A pilot's cost is computed from its site's price and billing period; a minimum time that is billed counts as the
// period.
func TestTerms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		price, billing string
		cpus           int
		want           cost.Money
		period         time.Duration
	}{
		{"", "", 1, 100, exactly},
		{"", "", 4, 400, exactly},
		{"1USD/cpu-hour", "1h", 2, 2_000_000, time.Hour},
		{"3EUR/host-hour", "1m", 8, 50_000, time.Minute},
		{"1ch/cpu-hour", "10m-minimum", 1, 166_667, 10 * time.Minute},
		{"1ch/max(cpu=1,mem=2)-hour", "1h", 1, 2_000_000, time.Hour}, // each cpu has 1 GiB
		{"1ch/sum(cpu=1,mem=0.5)-hour", "1h", 2, 3_000_000, time.Hour},
	} {
		p := asked(nil)
		facts := here
		facts.Site.Price, facts.Site.Billing = tt.price, tt.billing
		p.CPUs = tt.cpus
		pilots, err := pilots(p, facts, began)
		if err != nil {
			t.Fatal(err)
		}
		terms, err := terms(pilots)
		if err != nil || terms.Price != tt.want || terms.Period != tt.period {
			t.Errorf("%q by %q with %d cpus: %+v %v, want %s for %s", tt.price, tt.billing, tt.cpus, terms, err, tt.want, tt.period)
		}
	}
}
