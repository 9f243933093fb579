package slurm

import "testing"

// A user's line about one queue does not limit other queues.
func TestAllowanceOfAQueue(t *testing.T) {
	t.Parallel()
	lines, err := parseAllowances("|root|||cpu=N(100)\n|phys||root(1)|cpu=600(90)\n" +
		"j(5)|phys|debug||cpu=10(10)\nj(5)|phys|||cpu=N(10)\n")
	if err != nil {
		t.Fatal(err)
	}
	for queues, want := range map[string]int64{"": 510, "long": 510, "debug": 0, "long,debug": 0} {
		left, found := leftTo("phys", queues, lines)
		if !found || left == nil || left.CPUMinutes-left.Used != want {
			t.Errorf("queues %q: %+v, %t, want %d", queues, left, found, want)
		}
	}
}
