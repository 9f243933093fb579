package fault

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFaultsHappenAsPlanned(t *testing.T) {
	broken := errors.New("the action's own")
	for _, tt := range []struct {
		plan  string
		done  []bool // whether each action was done
		fails []bool // whether it failed
		took  time.Duration
	}{
		{plan: "trace", done: []bool{true, true}, fails: []bool{false, false}},
		{plan: "site.poll=error", done: []bool{false, true}, fails: []bool{true, false}},
		{plan: "site.poll=lost@2", done: []bool{true, true, true}, fails: []bool{false, true, false}},
		{plan: "site.poll=error@2x2", done: []bool{true, false, false, true}, fails: []bool{false, true, true, false}},
		{plan: "site.poll=timeout", done: []bool{false, true}, fails: []bool{true, false}, took: aWhile},
		{plan: "site.list=error,site.poll=slow@1x2", done: []bool{true, true}, fails: []bool{false, false}, took: 2 * aWhile},
		{plan: "site.list=error", done: []bool{true}, fails: []bool{false}},
	} {
		synctest.Test(t, func(t *testing.T) {
			defer planned.Store(nil)
			if err := Set(tt.plan, slog.New(slog.NewTextHandler(io.Discard, nil))); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			var done, fails []bool
			for range tt.done {
				acted := false
				n, err := At(t.Context(), SitePoll, func(context.Context) (int, error) { acted = true; return 1, nil })
				if (n == 1) != (err == nil) || err != nil && !errors.As(err, new(*Injected)) {
					t.Errorf("%s: %d, %v", tt.plan, n, err)
				}
				done, fails = append(done, acted), append(fails, err != nil)
			}
			if !slices.Equal(done, tt.done) || !slices.Equal(fails, tt.fails) || time.Since(began) != tt.took {
				t.Errorf("%s: done %v, fails %v, took %s", tt.plan, done, fails, time.Since(began))
			}
			if err := Do(t.Context(), SitePing, func(context.Context) error { return broken }); err != broken {
				t.Errorf("%s: the action's error became %v", tt.plan, err)
			}
		})
	}
}

func TestAnActionThatNobodyWaitsForIsGivenUp(t *testing.T) {
	defer planned.Store(nil)
	if err := Set("site.poll=timeout", slog.New(slog.NewTextHandler(io.Discard, nil))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Do(ctx, SitePoll, func(context.Context) error { return nil }); !errors.As(err, new(*Injected)) {
		t.Errorf("it ended with %v", err)
	}
}

func TestPlansThatAreNone(t *testing.T) {
	for _, text := range []string{"site.poll", "site.poll=", "site.poll=nap", "nowhere=error", "site.poll=error@0",
		"site.poll=error@1x", "site.poll=error@1x0", "site.poll=error@-1", "trace,,", "site.poll=error@1,2"} {
		_, err := parse(text)
		if err == nil || !strings.Contains(err.Error(), "is not a fault") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := Set("", nil); err != nil || planned.Load() != nil {
		t.Errorf("no plan: %v", err)
	}
}
