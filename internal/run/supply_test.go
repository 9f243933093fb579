package run

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/execution"
)

func TestDistinctTakesTheSame(t *testing.T) {
	t.Parallel()
	number := rapid.IntRange(0, 4)
	rapid.Check(t, func(t *rapid.T) {
		var s Supply
		for range rapid.IntRange(0, 12).Draw(t, "shapes") {
			s.Shapes = append(s.Shapes, Shape{CPUs: number.Draw(t, "cpus"), MemoryMiB: number.Draw(t, "memory"), Left: time.Duration(number.Draw(t, "left"))})
		}
		n := need{number.Draw(t, "cpus"), number.Draw(t, "memory"), time.Duration(number.Draw(t, "time"))}
		d := s.distinct()
		if len(d.Shapes) > len(s.Shapes) || d.takes(n) != s.takes(n) {
			t.Fatalf("%+v takes %+v: %v, distinct %+v: %v", s, n, s.takes(n), d, d.takes(n))
		}
		for i, shape := range d.Shapes {
			for k, other := range d.Shapes {
				if i != k && other.fits(need{shape.CPUs, shape.MemoryMiB, shape.Left}) {
					t.Fatalf("%+v covers %+v", other, shape)
				}
			}
		}
	})
}

func TestLack(t *testing.T) {
	t.Parallel()
	now := time.Now()
	small := WorkerShape(corral.Worker{ID: "s", CPUs: 1, MemoryMiB: 8192, Connected: true, EndsAt: now.Add(time.Hour + execution.StartMargin)}, now)
	wide := WorkerShape(corral.Worker{ID: "w", CPUs: 8, MemoryMiB: 1024, Connected: true, EndsAt: now.Add(time.Hour)}, now)
	leaving := WorkerShape(corral.Worker{ID: "l", CPUs: 8, MemoryMiB: 8192, EndsAt: now.Add(time.Hour), Connected: true, Draining: true}, now)
	tests := []struct {
		shapes []Shape
		need   need
		want   string
	}{
		{nil, need{1, 1, 1}, "none is requested"},
		{[]Shape{leaving}, need{1, 1, 1}, "those here take nothing any more and none is requested"},
		{[]Shape{small, leaving}, need{2, 1, 1}, "needs 2 cpus; the largest worker here has 1"},
		{[]Shape{small, wide}, need{2, 4096, 90 * time.Second}, "needs 2 cpus, 4096 MiB and 1m30s; no worker here has all of that together"},
		{[]Shape{small}, need{1, 1, 2 * time.Hour}, "needs 2h0m0s; the worker here that stays longest has 1h0m0s left"},
	}
	for _, tt := range tests {
		s := Supply{Shapes: tt.shapes}
		if s.takes(tt.need) {
			t.Errorf("%+v takes %+v", s, tt.need)
		}
		if got := s.lack(tt.need); !strings.Contains(got, tt.want) {
			t.Errorf("lack = %q, want %q", got, tt.want)
		}
	}
	if here := (Supply{Shapes: []Shape{small, leaving, {Name: "glidein 1"}}}).here(); fmt.Sprint(here) != "map[l:true s:true]" {
		t.Errorf("here = %v", here)
	}
}

func TestShortage(t *testing.T) {
	t.Parallel()
	s := newState(mustPlan(t, mustOptions("none"),
		spec{ID: "fits", Seconds: 1}, spec{ID: "b", CPUs: 9, Seconds: 1}, spec{ID: "c", CPUs: 9, Seconds: 9}, spec{ID: "d", CPUs: 9, Seconds: 5}))
	s.release(0, Supply{})
	one := Supply{Shapes: []Shape{{Name: "worker w", CPUs: 1, Left: time.Hour, Present: true}}}
	what := "task c needs 9 cpus; the largest worker here has 1; 2 more tasks cannot run either"
	if got := s.shortage(one, one.here()); got != (shortage{true, what}) {
		t.Errorf("shortage = %+v", got)
	}
	s.apply(record{Assigned: &assignment{Seq: s.tasks[0].job.seq, Worker: "w"}})
	if got := s.shortage(Supply{}, map[string]bool{"w": true}); !got.able {
		t.Errorf("a task runs, and yet: %+v", got)
	}
	s.tasks[0].job.awaited = true
	if got := s.shortage(Supply{}, nil); !got.able {
		t.Errorf("its worker may come back, and yet: %+v", got)
	}
	s.shortage(Supply{}, map[string]bool{"w": true}) // it is back
	if got := s.shortage(Supply{}, nil); got.able || !strings.Contains(got.what, "3 more tasks") {
		t.Errorf("its worker has left, and yet: %+v", got)
	}
}
