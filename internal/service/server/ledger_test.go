package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// charging creates a READY site with these terms.
func (f *fixture) charging(t *testing.T, price, billing, allocation string) corral.Site {
	t.Helper()
	f.readySite(t)
	return must(f.SetSite(t.Context(), "local", api.SetSite{Price: &price, Billing: &billing, Allocation: &allocation}))(t)
}

// TestTermsOfASite: terms are stored in one form, removed by empty strings, and refused if they are inconsistent.
func TestTermsOfASite(t *testing.T) {
	t.Parallel()
	f := start(t)
	site := f.charging(t, "0.04USD/cpuh", "60m", "500USD")
	if want := (corral.SiteTerms{Price: "0.04USD/cpu-hour", Billing: "1h", Allocation: "500USD"}); site.SiteTerms != want {
		t.Errorf("terms %+v, want %+v", site.SiteTerms, want)
	}
	for _, tc := range []struct {
		set   api.SetSite
		place string
	}{
		{api.SetSite{Price: ptr("-1USD/cpu-hour")}, "price"},
		{api.SetSite{Price: ptr("NaN")}, "price"},
		{api.SetSite{Price: ptr("1USD/GB")}, "price"},
		{api.SetSite{Price: ptr("1EUR/cpu-hour")}, "allocation"}, // the allocation stays in USD
		{api.SetSite{Billing: ptr("now and then")}, "billing"},
		{api.SetSite{Allocation: ptr("5000ch")}, "allocation"},
	} {
		_, err := f.SetSite(t.Context(), "local", tc.set)
		wantKind(t, fmt.Sprint(tc.place), err, corral.Invalid, tc.place)
	}
	got := must(f.SetSite(t.Context(), "local", api.SetSite{Price: ptr(""), Billing: ptr(""), Allocation: ptr("7ch")}))(t)
	if want := (corral.SiteTerms{Allocation: "7ch"}); got.SiteTerms != want {
		t.Errorf("terms %+v, want %+v", got.SiteTerms, want)
	}
	_, err := f.CreateSite(t.Context(), api.NewSite{Name: "dear", Contact: "local:", Batch: "fork",
		SiteTerms: corral.SiteTerms{Price: "much"}}, "")
	wantKind(t, "a new site", err, corral.Invalid, "price")
}

// TestPlansReserve: a plan costs what its site charges, reserves that when it is provisioned, and frees it when it is
// released. The remaining balance limits further plans, both before and when they are provisioned.
func TestPlansReserve(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.charging(t, "2USD/cpu-hour", "1h", "20USD")
	in := newPlan() // two steps of up to 2 pilots of one CPU, each for one started hour; the machine has CPUs for two such plans
	in.Workflow = fan(2, 600)
	first := must(f.CreatePlan(t.Context(), in, ""))(t)
	second := must(f.CreatePlan(t.Context(), in, ""))(t)
	spends := documentOf(t, first).Cost
	if spends.Unit != "USD" || spends.Money < 4_000_000 || spends.Money > 10_000_000 {
		t.Fatalf("the plan costs %s", spends)
	}
	if l := must(f.SiteLedger(t.Context(), "local"))(t); *l.Left != 20_000_000 || l.Price != "2USD/cpu-hour" || l.Billing != "1h" {
		t.Errorf("ledger before %+v", l)
	}
	must(f.ProvisionPlan(t.Context(), first.ID))(t)
	must(f.ProvisionPlan(t.Context(), first.ID))(t)
	l := must(f.SiteLedger(t.Context(), "local"))(t)
	if l.Reserved != spends.Money || *l.Left != 20_000_000-spends.Money || len(l.Plans) != 1 || l.Plans[0].Plan != first.ID {
		t.Errorf("ledger with one plan %+v", l)
	}
	must(f.SetSite(t.Context(), "local", api.SetSite{Allocation: ptr(cost.Amount{Money: 2*spends.Money - 1, Unit: "USD"}.String())}))(t)
	_, err := f.ProvisionPlan(t.Context(), second.ID)
	wantKind(t, "more than is left", err, corral.Conflict, "site local")
	if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("plan %d needs %s", second.ID, spends)) {
		t.Errorf("refused without the number: %v", err)
	}
	if got := must(f.Plan(t.Context(), second.ID))(t); got.State != corral.PlanReady {
		t.Errorf("plan is %s after its refusal", got.State)
	}
	in.Goal.Deadline = 0
	in.Goal.Budget = &cost.Amount{Money: 100_000_000, Unit: "USD"}
	if d := documentOf(t, must(f.CreatePlan(t.Context(), in, ""))(t)); !d.Feasible || d.Cost.Money >= spends.Money {
		t.Errorf("a plan of %s is made of what is left: %q", d.Cost, d.Reasons)
	}
	_, err = f.SetSite(t.Context(), "local", api.SetSite{Price: ptr("1ch/cpu-hour"), Allocation: ptr("")})
	wantKind(t, "another unit while a plan reserves", err, corral.Conflict, "price")

	must(f.ReleasePlan(t.Context(), first.ID))(t)
	must(f.ProvisionPlan(t.Context(), second.ID))(t)
	if l := must(f.SiteLedger(t.Context(), "local"))(t); l.Reserved != spends.Money || l.Plans[0].Plan != second.ID {
		t.Errorf("ledger after the release %+v", l)
	}
	must(f.SetSite(t.Context(), "local", api.SetSite{Allocation: ptr("1USD")}))(t)
	in.Goal = newPlan().Goal
	row := must(f.CreatePlan(t.Context(), in, ""))(t)
	if row.State != corral.PlanInfeasible || !strings.Contains(string(row.Document), "site local has ") {
		t.Errorf("without anything left: %s %s", row.State, row.Document)
	}
}

// TestWhatIf: a plan can be computed with other prices, periods and startup times than the known ones, and states
// this.
func TestWhatIf(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.charging(t, "", "", "100ch")
	in := newPlan()
	in.Price, in.Billing, in.Overhead = "0.5EUR/host-hour", "10m-minimum", ptr(corral.Seconds(0))
	in.Goal.Budget, in.Marginal, in.Algorithm = &cost.Amount{Money: 50_000_000, Unit: "EUR"}, true, plan.Staircase
	d := documentOf(t, must(f.CreatePlan(t.Context(), in, ""))(t))
	if d.Cost.Unit != "EUR" || d.Makespan > corral.Seconds(20*time.Minute+time.Second) || d.Billed < d.CoreHours {
		t.Errorf("plan %+v", d)
	}
	for _, said := range []string{"price 0.5EUR/host-hour is assumed", "billing by 10m-minimum is assumed", "0s of start-up",
		"100ch, does not count at a price in EUR"} {
		if !strings.Contains(strings.Join(d.Reasons, "\n"), said) {
			t.Errorf("reasons %q lack %q", d.Reasons, said)
		}
	}
	if a := d.Asked; a.Price != in.Price || a.Billing != in.Billing || *a.Overhead != 0 || len(a.Sites) > 0 {
		t.Errorf("the plan keeps %+v of what was asked", a)
	}
	if len(d.Marginal) == 0 || d.Marginal[0].Linear <= 1 || d.Marginal[0].SpeedUp <= 1 {
		t.Errorf("marginal %+v", d.Marginal)
	}
	before := len(must(f.Plans(t.Context(), api.Filter{All: true}))(t))
	in.DryRun = true
	row := must(f.CreatePlan(t.Context(), in, ""))(t)
	if row.ID != 0 || row.State != corral.PlanReady || documentOf(t, row).Makespan != d.Makespan {
		t.Errorf("a dry run answers %+v", row)
	}
	if after := len(must(f.Plans(t.Context(), api.Filter{All: true}))(t)); after != before {
		t.Errorf("a dry run left %d plans", after-before)
	}
	for place, edit := range map[string]func(*api.NewPlan){
		"algorithm":  func(p *api.NewPlan) { p.Algorithm = "heft" },
		"price":      func(p *api.NewPlan) { p.Price = "-1USD/cpu-hour" },
		"billing":    func(p *api.NewPlan) { p.Billing = "0s" },
		"overhead_s": func(p *api.NewPlan) { p.Overhead = ptr(corral.Seconds(-time.Second)) },
		"budget":     func(p *api.NewPlan) { p.Price = "1USD/cpu-hour" }, // the budget is in EUR
	} {
		bad := in
		edit(&bad)
		_, err := f.CreatePlan(t.Context(), bad, "")
		wantKind(t, place, err, corral.Invalid, place)
	}
}

// TestSitesOfSeveralUnits: prices in two units cannot be added up unless one price is assumed.
func TestSitesOfSeveralUnits(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.charging(t, "2USD/cpu-hour", "", "")
	must(f.CreateSite(t.Context(), api.NewSite{Name: "other", Contact: "local:", Batch: "fork"}, ""))(t)
	_, err := f.CreatePlan(t.Context(), newPlan(), "")
	wantKind(t, "two units", err, corral.Invalid, "sites")
	in := newPlan()
	in.Sites, in.HostCPUs = []string{"2"}, 1
	if a := documentOf(t, must(f.CreatePlan(t.Context(), in, ""))(t)).Asked; fmt.Sprint(a.Sites, a.Shape) != "[other] 1" {
		t.Errorf("the plan keeps %+v of what was asked", a)
	}
	in = newPlan()
	in.Price = "1ch/cpu-hour"
	if row := must(f.CreatePlan(t.Context(), in, ""))(t); row.State != corral.PlanReady {
		t.Errorf("with one price the plan is %s", row.State)
	}
}
