package selection_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/selection"
)

// TestAds checks a machine's attributes and a job's expressions.
func TestAds(t *testing.T) {
	t.Parallel()
	compute := selection.Consumable{Type: "compute", Form: map[string][]selection.Value{
		"isa": {selection.Text("x86_64")}, "simd": {selection.Text(`a"vx`), selection.Number(2)}}}
	machine, err := selection.Machine([]selection.Capability{{Consumable: compute, Rate: 2.8e9}})
	want := []selection.Attribute{
		{"CorralForm_compute_isa", `{ "x86_64" }`}, {"CorralForm_compute_simd", `{ "a\"vx", 2.0e+00 }`}, {"CorralRate_compute", "2.8e+09"},
	}
	if diff := cmp.Diff(want, machine); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	delete(compute.Form, "simd")
	requirements, rank, err := selection.Job([]selection.Requirement{{Consumable: compute, Amount: 3.4e12},
		{Consumable: selection.Consumable{Type: "bytes"}, Amount: 100}})
	const wantRequirements = `TARGET.CorralRate_compute > 0.0 && (anyCompare("is", TARGET.CorralForm_compute_isa, undefined) || ` +
		`anyCompare("is", TARGET.CorralForm_compute_isa, "x86_64")) && TARGET.CorralRate_bytes > 0.0`
	const wantRank = `-(3.4e+12 / TARGET.CorralRate_compute + 1.0e+02 / TARGET.CorralRate_bytes)`
	if requirements != wantRequirements || rank != wantRank || err != nil {
		t.Errorf("requirements %s\nrank %s\n%v", requirements, rank, err)
	}
	if requirements, rank, err := selection.Job(nil); requirements != "true" || rank != "0.0" || err != nil {
		t.Errorf("of a job that requires nothing: %s, %s, %v", requirements, rank, err)
	}
}

func TestAdsRefuse(t *testing.T) {
	t.Parallel()
	one := selection.Consumable{Type: "compute"}
	odd := selection.Consumable{Type: "x = true\ny"}
	form := selection.Consumable{Type: "x", Form: map[string][]selection.Value{"a.b": nil}}
	for name, c := range map[string][]selection.Capability{
		"capitals": {{Consumable: selection.Consumable{Type: "GPU"}, Rate: 1}}, "no rate": {{Consumable: one}},
		"twice": {{Consumable: one, Rate: 1}, {Consumable: one, Rate: 2}}, "a type of two lines": {{Consumable: odd, Rate: 1}},
		"an attribute with a dot": {{Consumable: form, Rate: 1}},
	} {
		if _, err := selection.Machine(c); corral.KindOf(err) != corral.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := selection.Job([]selection.Requirement{{Consumable: c[0].Consumable, Amount: 1}}); name != "twice" && name != "no rate" && corral.KindOf(err) != corral.Invalid {
			t.Errorf("a job with %s: %v", name, err)
		}
	}
}
