package selection_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/selection"
)

func form(pairs ...any) map[string][]selection.Value {
	f := map[string][]selection.Value{}
	for i := 0; i < len(pairs); i += 2 {
		var values []selection.Value
		for _, v := range pairs[i+1].([]any) {
			switch x := v.(type) {
			case string:
				values = append(values, selection.Text(x))
			case int:
				values = append(values, selection.Number(float64(x)))
			case float64:
				values = append(values, selection.Number(x))
			}
		}
		f[pairs[i].(string)] = values
	}
	return f
}

type some = []any

func consumable(kind string, pairs ...any) selection.Consumable {
	return selection.Consumable{Type: kind, Form: form(pairs...)}
}

func needs(amount float64, c selection.Consumable) selection.Requirement {
	return selection.Requirement{Consumable: c, Amount: amount}
}

func offers(rate float64, c selection.Consumable) selection.Capability {
	return selection.Capability{Consumable: c, Rate: rate}
}

func TestServes(t *testing.T) {
	t.Parallel()
	x86 := consumable("compute", "isa", some{"x86_64"})
	for name, c := range map[string]struct {
		offered, required selection.Consumable
		why               string
	}{
		"the same":                     {x86, x86, ""},
		"another type":                 {consumable("bytes"), x86, "it is bytes, not compute"},
		"an attribute that is missing": {consumable("compute"), x86, "its isa is not known"},
		"disjoint values":              {consumable("compute", "isa", some{"aarch64"}), x86, `its isa is "aarch64", not "x86_64"`},
		"values that overlap":          {consumable("compute", "isa", some{"aarch64", "x86_64"}), consumable("compute", "isa", some{"x86_64", "ppc"}), ""},
		"more than is asked for":       {consumable("compute", "isa", some{"x86_64"}, "simd", some{"avx"}), x86, ""},
		"1 and 1.0":                    {consumable("c", "n", some{1.0}), consumable("c", "n", some{1}), ""},
		"1 and a text":                 {consumable("c", "n", some{"1"}), consumable("c", "n", some{1}), `its n is "1", not 1`},
		"capitals":                     {consumable("c", "n", some{"AVX"}), consumable("c", "n", some{"avx"}), `its n is "AVX", not "avx"`},
		"no form":                      {x86, consumable("compute"), ""},
		"one of two attributes":        {consumable("c", "a", some{1}, "b", some{1}), consumable("c", "a", some{1}, "b", some{2}), "its b is 1, not 2"},
		"no value that would do":       {x86, consumable("compute", "isa", some{}), `its isa is "x86_64", not nothing`},
		"no value that is offered":     {consumable("compute", "isa", some{}), x86, `its isa is nothing, not "x86_64"`},
	} {
		if why := offers(1, c.offered).Serves(needs(1, c.required)); why != c.why {
			t.Errorf("%s: %q, want %q", name, why, c.why)
		}
	}
}

// drawnForm generates a form with few attributes and values.
func drawnForm(t *rapid.T) map[string][]selection.Value {
	values := []selection.Value{selection.Text("a"), selection.Text("A"), selection.Text("1"), selection.Number(1), selection.Number(2.5)}
	f := map[string][]selection.Value{}
	for _, attribute := range []string{"x", "y"} {
		if rapid.Bool().Draw(t, attribute) {
			f[attribute] = rapid.SliceOfN(rapid.SampledFrom(values), 0, 3).Draw(t, "values")
		}
	}
	return f
}

// Serves agrees with an exhaustive search.
func TestServesEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.SampledFrom([]string{"compute", "bytes"})
		c := offers(1, selection.Consumable{Type: kinds.Draw(t, "offered"), Form: drawnForm(t)})
		r := needs(1, selection.Consumable{Type: kinds.Draw(t, "required"), Form: drawnForm(t)})
		want := c.Type == r.Type
		for attribute, wanted := range r.Form {
			found := false
			for _, w := range wanted {
				for _, o := range c.Form[attribute] {
					found = found || w == o
				}
			}
			want = want && found
		}
		if why := c.Serves(r); (why == "") != want {
			t.Fatalf("%+v of %+v: %q", r, c, why)
		}
	})
}

// The total requirements of a task do not depend on how its instructions are divided or ordered.
func TestAggregate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cs := []selection.Consumable{consumable("compute", "isa", some{"x86_64", "aarch64"}), consumable("compute", "isa", some{"aarch64", "x86_64"}),
			consumable("compute"), consumable("bytes")}
		var all []selection.Requirement
		total := 0.0
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			r := needs(rapid.Float64Range(1e-3, 1e9).Draw(t, "amount"), rapid.SampledFrom(cs).Draw(t, "consumable"))
			all, total = append(all, r), total+r.Amount
		}
		whole, err := selection.Aggregate(all)
		if err != nil {
			t.Fatal(err)
		}
		var cut [][]selection.Requirement
		for _, r := range rapid.Permutation(all).Draw(t, "order") {
			cut = append(cut, []selection.Requirement{r})
		}
		again, err := selection.Aggregate(cut...)
		if diff := cmp.Diff(amounts(whole), amounts(again)); diff != "" || err != nil || len(whole) > 3 {
			t.Fatalf("%v, %d consumables (-whole +cut):\n%s", err, len(whole), diff)
		}
		sum := 0.0
		for _, r := range whole {
			sum += r.Amount
		}
		if math.Abs(sum-total) > 1e-9*total {
			t.Fatalf("amounts come to %v, and were %v", sum, total)
		}
	})
}

func amounts(all []selection.Requirement) (some []float64) {
	for _, r := range all {
		some = append(some, r.Amount)
	}
	return some
}

func TestBill(t *testing.T) {
	t.Parallel()
	x86 := consumable("compute", "isa", some{"x86_64"})
	node := []selection.Capability{
		offers(2, consumable("compute", "isa", some{"x86_64"}, "simd", some{"avx"})), offers(4, x86), offers(10, consumable("bytes")),
	}
	task := []selection.Requirement{needs(8, x86), needs(5, consumable("bytes"))}
	items, err := selection.Bill(node, task)
	want := []selection.Item{{Type: "compute", Amount: 8, Rate: 4, Cost: 2}, {Type: "bytes", Amount: 5, Rate: 10, Cost: 0.5}}
	if diff := cmp.Diff(want, items); err != nil || diff != "" || selection.Cost(items) != 2.5 {
		t.Errorf("%v, cost %v (-want +got):\n%s", err, selection.Cost(items), diff)
	}
	for name, c := range map[string]struct {
		resource []selection.Capability
		task     []selection.Requirement
		want     string
		kind     corral.Kind
	}{
		"nothing matches: it costs no nothing": {nil, task, "compute: there is none", corral.Unsatisfiable},
		"the first that is not served":         {node[:2], task, "bytes: there is none", corral.Unsatisfiable},
		"why":                                  {node, []selection.Requirement{needs(1, consumable("compute", "isa", some{"ppc"}))}, `its isa is "x86_64", not "ppc"`, corral.Unsatisfiable},
		"an amount of 0":                       {node, []selection.Requirement{needs(0, x86)}, "positive", corral.Invalid},
		"an amount that is no number":          {node, []selection.Requirement{needs(math.NaN(), x86)}, "positive", corral.Invalid},
		"a rate of -1":                         {[]selection.Capability{offers(-1, x86)}, task, "positive", corral.Invalid},
	} {
		_, err := selection.Bill(c.resource, c.task)
		if err == nil || !strings.Contains(err.Error(), c.want) || corral.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %s: %s", name, err, c.kind, c.want)
		}
	}
	if _, err := selection.Aggregate([]selection.Requirement{needs(-1, x86)}); corral.KindOf(err) != corral.Invalid {
		t.Errorf("a negative amount is aggregated: %v", err)
	}
}

// Doubling the rate halves the cost, and doubling the amount doubles it.
func TestBillScales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount, rate := rapid.Float64Range(1e-3, 1e12).Draw(t, "amount"), rapid.Float64Range(1e-3, 1e12).Draw(t, "rate")
		c := consumable("compute")
		cost := func(amount, rate float64) float64 {
			items, err := selection.Bill([]selection.Capability{offers(rate, c)}, []selection.Requirement{needs(amount, c)})
			if err != nil {
				t.Fatal(err)
			}
			return selection.Cost(items)
		}
		once := cost(amount, rate)
		if cost(2*amount, rate) != 2*once || cost(amount, 2*rate) != once/2 {
			t.Fatalf("%v of %v costs %v", amount, rate, once)
		}
	})
}

func TestSelect(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(1), math.NaN()
	for want, all := range map[int][][]float64{
		selection.None: {nil, {nan}, {-inf, -inf}, {nan, -inf}},
		0:              {{1}, {2, 2}, {inf, 1}, {-1, -2, -1}, {0, nan}},
		1:              {{1, 2}, {nan, -5}, {-inf, -1e300}, {1, inf, inf}},
	} {
		for _, affinities := range all {
			if got := selection.Select(affinities); got != want {
				t.Errorf("of %v: %d, want %d", affinities, got, want)
			}
		}
	}
}

// Tasks are assigned to the fastest resource while it has free places, and then to the resource where they end first.
func TestSpread(t *testing.T) {
	t.Parallel()
	got := selection.Spread(6, []int{2, 3, 0}, []float64{0, 0, 0}, []float64{10, 15, 1})
	if diff := cmp.Diff([]int{0, 0, 1, 1, 1, 0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := selection.Spread(2, []int{0}, []float64{0}, []float64{1}); !slices.Equal(got, []int{selection.None, selection.None}) {
		t.Errorf("without a place: %v", got)
	}
}

// 100 tasks on nodes of 24 cpus need five nodes, with 20 unused cpus; with one cpu per node each task has its own node.
func TestShape(t *testing.T) {
	t.Parallel()
	for cpus, want := range map[int][2]int{24: {5, 20}, 1: {100, 0}, 100: {1, 0}, 128: {1, 28}} {
		if nodes, left, err := selection.Shape(100, cpus); err != nil || nodes != want[0] || left != want[1] {
			t.Errorf("nodes of %d: %d, %d left, %v; want %v", cpus, nodes, left, err, want)
		}
	}
	if _, _, err := selection.Shape(0, 1); err == nil {
		t.Error("no tasks have a shape")
	}
}

// A factor of 1.23 is learned within 5 % from fifty runs that vary by 10 %, and a single run that takes a hundred times
// as long changes the factor by less than 5 %.
func TestFactor(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 23))
	var runs []selection.Observation
	for range 50 {
		runs = append(runs, selection.Observation{Took: 100 * 1.23 * (1 + 0.1*rng.NormFloat64()), Expected: 100})
	}
	clean, n := selection.Factor(append(runs, selection.Observation{}, selection.Observation{Took: 1}, selection.Observation{Took: math.NaN(), Expected: 1}))
	if math.Abs(clean/1.23-1) > 0.05 || n != 50 {
		t.Errorf("learned %v of %d runs", clean, n)
	}
	runs[0].Took *= 100
	if hung, _ := selection.Factor(runs); math.Abs(hung/clean-1) > 0.05 {
		t.Errorf("one that hung moves it from %v to %v", clean, hung)
	}
	if f, n := selection.Factor(nil); f != 1 || n != 0 {
		t.Errorf("of no runs: %v, %d", f, n)
	}
}

func TestPoolRate(t *testing.T) {
	t.Parallel()
	if got := selection.PoolRate([]selection.Processors{{30, 2.0}, {10, 4.0}, {0, 9}, {5, 0}}); got != 2.5 {
		t.Errorf("PoolRate = %v, want 2.5", got)
	}
	if got := selection.PoolRate(nil); got != 0 {
		t.Errorf("of none: %v", got)
	}
}

// Gaps between pilots are waits, and the two times add up to the time until the last end, for any overlaps.
func TestCompletion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spans []selection.Span
		busy, last := map[int]bool{}, 0
		for range rapid.IntRange(0, 8).Draw(t, "spans") {
			start := rapid.IntRange(0, 20).Draw(t, "start")
			end := start + rapid.IntRange(0, 6).Draw(t, "length")
			spans = append(spans, selection.Span{Start: float64(start), End: float64(end)})
			for k := start; k < end; k++ {
				busy[k] = true
			}
			last = max(last, end)
		}
		waited, ran := selection.Completion(0, spans)
		if ran != float64(len(busy)) || waited+ran != float64(last) {
			t.Fatalf("waited %v, ran %v; %d of %d were busy", waited, ran, len(busy), last)
		}
	})
}

// A thousand amounts within 1 % of each other have at most five distinct values after rounding.
func TestQuantised(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 17))
	for _, middle := range []float64{3.41e12, 9.96, 1.0e-3} {
		sorts := map[float64]bool{}
		for range 1000 {
			amount := middle * (0.99 + 0.02*rng.Float64())
			q := selection.Quantised(amount)
			sorts[q] = true
			if math.Abs(q/amount-1) > 0.05 {
				t.Errorf("%v becomes %v", amount, q)
			}
		}
		if len(sorts) > 5 {
			t.Errorf("about %v: %d", middle, len(sorts))
		}
	}
	if q := selection.Quantised(math.Inf(1)); !math.IsInf(q, 1) {
		t.Errorf("of infinity: %v", q)
	}
}

func TestValuesInJSON(t *testing.T) {
	t.Parallel()
	in := []selection.Value{selection.Number(1), selection.Number(2.5), selection.Text("1"), selection.Text("")}
	b, err := json.Marshal(in)
	if string(b) != `[1,2.5,"1",""]` || err != nil {
		t.Errorf("written as %s, %v", b, err)
	}
	var out []selection.Value
	if err := json.Unmarshal(b, &out); err != nil || !slices.Equal(in, out) {
		t.Errorf("read as %v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`[true]`), &out); err == nil {
		t.Error("true is a value")
	}
}

// The identities of the paper: the error is the drift of the number of instructions, and the ratio of times is the
// product of the ratios of cycles and clocks.
func TestDrift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string) float64 { return rapid.Float64Range(1e6, 1e13).Draw(t, name) }
		d := selection.Drift{Predicted: n("predicted"), Cycles: n("cycles"), Instructions: n("instructions")}
		want := math.Abs(d.Predicted-d.Instructions) / d.Predicted * 100
		if got := d.Error(); !cmp.Equal(got, want, cmpopts.EquateApprox(1e-9, 1e-9)) {
			t.Fatalf("%+v: %v, want %v", d, got, want)
		}
		predicted, mean := rapid.Float64Range(1, 5).Draw(t, "clock"), rapid.Float64Range(1, 5).Draw(t, "mean")
		took, said := d.Cycles/mean, d.Predicted/predicted
		if got := d.TimeError(predicted, mean); !cmp.Equal(got, 100*(said/took-1), cmpopts.EquateApprox(1e-9, 1e-9)) {
			t.Fatalf("%+v: %v, want %v", d, got, 100*(said/took-1))
		}
	})
}
