package prices_test

import (
	"math"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/prices"
	"github.com/corral-pilot/corral/plan/cost"
)

const pricesHeader = "list,item,price,unit,per\n"

func TestReadPricesRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                              "p.csv: the file is empty",
		"a,b,c,d,e\n":                                   "p.csv:1: the first line is not",
		pricesHeader + "a,b\n":                          "p.csv:2: the number of fields is not 5",
		pricesHeader + ",vm,1,USD,GB\n":                 "p.csv:2: \"\" must be a name",
		pricesHeader + "a,vm,-1,USD,GB\n":               "p.csv:2: \"-1USD\" is not an amount",
		pricesHeader + "a,vm,1,usd,GB\n":                "p.csv:2: \"1usd\" is not an amount",
		pricesHeader + "a,vm,1,USD,kB\n":                "p.csv:2: \"kB\" must be one of",
		pricesHeader + "a,s3-put,1,USD,GB\n":            "p.csv:2: the price of s3-put must be per 1000-requests, not per GB",
		pricesHeader + "a,vm,1,USD,GB\na,vm,1,USD,GB\n": "p.csv:3: list a has a second price for vm",
		pricesHeader + "a,vm,1,USD,GB\na,x,1,EUR,GB\n":  "p.csv:3: list a mixes prices in USD and EUR",
		pricesHeader + strings.Repeat("x", 5<<20):       "p.csv: longer than 4 MiB",
	} {
		_, err := prices.ReadPrices(strings.NewReader(text), "p.csv")
		if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadPrices(%.60q) = %v; want an error with %q", text, err, want)
		}
	}
	if _, err := prices.Published()["ec2-2010"].EBS(1, 1, 1); corral.KindOf(err) != corral.NotFound {
		t.Errorf("a price that the list lacks: %v", err)
	}
}

func FuzzReadPrices(f *testing.F) {
	f.Add(pricesHeader + "a,vm,0.68,USD,host-hour\na,s3-put,1,USD,1000-requests\nb,vm,1,ch,cpu-hour\n")
	f.Fuzz(func(t *testing.T, text string) {
		lists, err := prices.ReadPrices(strings.NewReader(text), "p.csv")
		if err != nil && (corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), "p.csv")) {
			t.Errorf("error without kind or place: %v", err)
		}
		for _, p := range lists {
			for item, r := range p.Rates {
				if r.Price < 0 {
					t.Errorf("%s: %v", item, r)
				}
			}
		}
	})
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		runtime, cost float64
		want          prices.Verdict
	}{
		{-0.38, -0.08, prices.Better}, {-0.1, 0, prices.Better}, {0, -0.1, prices.Better},
		{0.02, 0.15, prices.Worse}, {0.1, 0, prices.Worse}, {0, 0.1, prices.Worse},
		{-0.2, 0.1, prices.Worth}, {-0.1, 0.2, prices.NotWorth},
		{0.1, -0.2, prices.Worth}, {0.2, -0.1, prices.NotWorth},
		{-0.1, 0.1, prices.Even}, {0.1, -0.1, prices.Even}, {0, 0, prices.Even},
	} {
		if got := (prices.Change{Runtime: c.runtime, Cost: c.cost}).Judge(); got != c.want {
			t.Errorf("runtime %+v, cost %+v: %s, want %s", c.runtime, c.cost, got, c.want)
		}
	}
	got := prices.ChangeOf(cost.Point{Makespan: 100, Cost: 0}, cost.Point{Makespan: 50, Cost: 3})
	if got.Runtime != -0.5 || !math.IsInf(got.Cost, 1) || got.Ratio() != 0 || got.Judge() != prices.NotWorth {
		t.Errorf("from nothing: %+v", got)
	}
	if same := prices.ChangeOf(cost.Point{}, cost.Point{}); same.Ratio() != 0 || same.Judge() != prices.Even {
		t.Errorf("no change: %+v", same)
	}
}
