package execution

import (
	"math"
	"slices"
	"testing"
)

// The limits between transfers that show both a latency and a bandwidth and those that show only one of them. The times
// are in milliseconds; unless a case says otherwise, a transfer takes 10 ms, and 1 ms for each 10,000 bytes.
func TestLineAtItsLimits(t *testing.T) {
	t.Parallel()
	alike := func(n int, took Msec, bytes int64) []Way { return slices.Repeat([]Way{{In: took, Bytes: bytes}}, n) }
	const mega = 1_000_000
	for _, tt := range []struct {
		name               string
		ways               []Way
		latency, bandwidth float64
	}{
		{"small ones have bytes, too", slices.Concat(alike(3, 110, mega), alike(3, 1010, 10*mega)), 10, 1e7},
		{"the smaller three of five, and the last, which has half of the bytes",
			[]Way{{In: 10}, {In: 10}, {In: 40}, {In: 3020, Bytes: 10 * mega}, {In: 1020, Bytes: 10 * mega}}, 20, 1e7},
		{"four are too few", []Way{{In: 10}, {In: 30}, {In: 1020, Bytes: mega}, {In: 1020, Bytes: mega}}, 20, 0},
		{"twice the size is alike", slices.Concat(alike(3, 110, mega), alike(3, 210, 2*mega)), 0, 1e3 * 9 * mega / 960},
		{"more than twice the size is not", slices.Concat(alike(3, 110, mega), alike(3, 220, 2*mega+100_000)), 10, 1e7},
		{"a large one that is small", slices.Concat(alike(5, 10, 0), alike(1, 110, 1<<16)), 10, 0},
		{"a large one that is just large enough", slices.Concat(alike(5, 10, 0), alike(1, 110, 1<<16+1)), 10, (1<<16 + 1) * 10},
		{"large ones that are small", slices.Concat(alike(3, 10, 0), alike(3, 110, 40_000)), 10, 0},
		{"large ones that take no longer", slices.Concat(alike(3, 100, 0), alike(3, 100, 10*mega)), 100, 0},
		{"large ones that take less", slices.Concat(alike(3, 100, 0), alike(3, 60, 10*mega)), 100, 0},
		{"a mebibyte each", alike(2, 100, 1<<20), 0, 1e3 * (1 << 20) / 100},
		{"half a mebibyte each", alike(2, 100, 1<<19), 100, 0},
		{"no time", alike(2, 0, 1<<21), 0, 0},
	} {
		latency, bandwidth := line(tt.ways)
		if math.Abs(latency-tt.latency) > 1e-4*tt.latency || !(math.Abs(bandwidth-tt.bandwidth) <= 1e-4*tt.bandwidth) {
			t.Errorf("%s: %g ms and %g bytes a second, want %g and %g", tt.name, latency, bandwidth, tt.latency, tt.bandwidth)
		}
	}
}
