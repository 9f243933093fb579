package plot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

// A lane with few bars is drawn unchanged. With many bars, each part of the time has the kind of task that took up most
// of it, idle parts have no kind, and equal neighbours are joined to one bar.
func TestLanesThin(t *testing.T) {
	t.Parallel()
	second := func(s float64) corral.Seconds { return corral.Seconds(s * float64(time.Second)) }
	bar := func(from, to float64, kind int) Bar { return Bar{second(from), second(to), kind} }
	lane := Lane{Bars: []Bar{bar(0, 0.9, 0), bar(1, 1.6, 0), bar(1.6, 1.9, 1), bar(2, 2.2, 1), bar(3, 3.4, 1),
		bar(3.4, 3.6, 2), bar(3.6, 4, 1)}}
	want := []Bar{bar(0, 2, 0), bar(3, 4, 1)}
	if diff := cmp.Diff(want, lane.thin(4, second(4))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(lane.Bars, lane.thin(len(lane.Bars), second(4))); diff != "" {
		t.Errorf("few bars (-want +got):\n%s", diff)
	}
}

// Each worker is named once, at its first lane, and only as many names are drawn as fit.
func TestLanesAreNamed(t *testing.T) {
	t.Parallel()
	lanes := []Lane{{Name: "worker 1"}, {Name: "worker 1"}, {Name: "worker 2"}}
	var got []string
	for _, at := range laneNames(lanes).Ticks(0, 3) {
		got = append(got, at.Label)
	}
	if diff := cmp.Diff([]string{"worker 1", "worker 2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	many := make([]Lane, mostLanes)
	for i := range many {
		many[i].Name = string(rune('a' + i))
	}
	if n := len(laneNames(many).Ticks(0, mostLanes)); n != mostNames {
		t.Errorf("%d lanes have %d names, want %d", len(many), n, mostNames)
	}
}
