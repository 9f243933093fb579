package sim_test

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/sim"
)

func TestParseSpread(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sim.Spread{
		"0": {}, "uniform:30%": {Law: "uniform", Size: 0.3}, "uniform:0.3": {Law: "uniform", Size: 0.3},
		"lognormal:0.2": {Law: "lognormal", Size: 0.2}, "transformation:50%": {Law: "transformation", Size: 0.5},
		"host:1": {Law: "host", Size: 1},
	} {
		got, err := sim.ParseSpread(text)
		if err != nil || got != want {
			t.Errorf("ParseSpread(%q) = %v, %v, want %v", text, got, err, want)
		}
		if again, err := sim.ParseSpread(got.String()); err != nil || again != got {
			t.Errorf("%q is written as %q, which is read as %v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "1", "uniform", "uniform:", "uniform:NaN", "uniform:-1", "uniform:101%",
		"lognormal:4", "lognormal:Inf", "normal:1", "uniform:30%%"} {
		if got, err := sim.ParseSpread(text); corral.KindOf(err) != corral.Invalid {
			t.Errorf("ParseSpread(%q) = %v, %v, want an Invalid error", text, got, err)
		}
	}
}
