package process

import (
	"slices"
	"testing"
)

// The first of two workers, 20 and 30, has died. In task 31 of the second worker, process 33 has lost its parent, and
// process 34 has also left the task's process group.
func TestStrays(t *testing.T) {
	t.Parallel()
	f := family{
		children: map[int][]int{1: {10}, 10: {30, 21, 23, 33, 34}, 21: {22}, 30: {31}, 31: {32}},
		group:    map[int]int{10: 10, 21: 21, 22: 21, 23: 21, 30: 30, 31: 31, 32: 31, 33: 31, 34: 34},
	}
	for _, c := range []struct {
		keep map[int]bool
		want []int
	}{
		{map[int]bool{30: true}, []int{21, 22, 23, 34}},
		{nil, []int{21, 22, 23, 30, 31, 32, 33, 34}},
	} {
		got := f.strays(10, c.keep)
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("strays(10, %v) = %v, want %v", c.keep, got, c.want)
		}
	}
}
