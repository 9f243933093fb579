package notation_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// Durations as squeue, and as sacct and scontrol show them.
func TestClocks(t *testing.T) {
	for d, want := range map[time.Duration][2]string{
		0:                                   {"0:00", "00:00:00"},
		-time.Minute:                        {"0:00", "00:00:00"},
		5 * time.Second:                     {"0:05", "00:00:05"},
		1999 * time.Millisecond:             {"0:01", "00:00:01"},
		59*time.Minute + 59*time.Second:     {"59:59", "00:59:59"},
		time.Hour:                           {"1:00:00", "01:00:00"},
		23*time.Hour + 59*time.Minute:       {"23:59:00", "23:59:00"},
		24 * time.Hour:                      {"1-00:00:00", "1-00:00:00"},
		51*time.Hour + time.Second:          {"2-03:00:01", "2-03:00:01"},
		366 * 24 * time.Hour:                {"366-00:00:00", "366-00:00:00"},
		100*24*time.Hour + 90*time.Minute/2: {"100-00:45:00", "100-00:45:00"},
	} {
		if got := [2]string{notation.Clock(d), notation.FullClock(d)}; got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// Sizes have the largest unit without a fraction.
func TestMemory(t *testing.T) {
	for mib, want := range map[int64]string{
		0: "0M", 1: "1M", 1000: "1000M", 1023: "1023M", 1024: "1G", 1536: "1536M", 2048: "2G", 1 << 20: "1T", 3 << 20: "3T",
		1<<20 + 1024: "1025G", 1 << 30: "1024T",
	} {
		if got := notation.Memory(mib); got != want {
			t.Errorf("%d MiB are %s, want %s", mib, got, want)
		}
	}
}

// Lists of an array's tasks: complete as in --array, and shortened as in squeue.
func TestNumbers(t *testing.T) {
	series := func(first, last, step int) (list []int) {
		for n := first; n <= last; n += step {
			list = append(list, n)
		}
		return list
	}
	for _, test := range []struct {
		list        []int
		full, short string
	}{
		{nil, "", ""},
		{[]int{7}, "7", "7"},
		{series(0, 9, 1), "0-9", "0-9"},
		{[]int{1, 2, 4, 5, 9}, "1-2,4-5,9", "1-2,4-5,9"},
		{series(1, 9, 2), "1,3,5,7,9", "1,3,5,7,9"},        // too few for a step
		{series(0, 10, 2), "0,2,4,6,8,10", "0,2,4,6,8,10"}, // too close together
		{series(1, 13, 2), "1,3,5,7,9,11,13", "1-13:2"},
		{append(series(1, 13, 2), 20), "1,3,5,7,9,11,13,20", "1,3,5,7,9,11,13,20"},
		{
			append(series(100, 200, 3), 999), "100,103,106,109,112,115,118,121,124,127,130,133,136,139,142,145,148,151,154,157," +
				"160,163,166,169,172,175,178,181,184,187,190,193,196,199,999",
			"100,103,106,109,112,115,118,121,124,127,130,133,136,139,142,...",
		},
	} {
		if full, short := notation.Numbers(test.list), notation.ShowNumbers(test.list); full != test.full || short != test.short {
			t.Errorf("%v is %q and %q, want %q and %q", test.list, full, short, test.full, test.short)
		}
	}
}

// The memory of a job, as requested for the job or for each of its CPUs.
func TestTotal(t *testing.T) {
	for _, test := range []struct {
		size notation.Size
		want int64
	}{
		{notation.Size{CPUs: 4}, 0},
		{notation.Size{CPUs: 4, MemoryMiB: 100}, 100},
		{notation.Size{CPUs: 4, MemoryMiB: 100, MemoryEach: true}, 400},
	} {
		if got := test.size.Total(); got != test.want {
			t.Errorf("%+v: %d MiB, want %d", test.size, got, test.want)
		}
	}
}

func TestExitCode(t *testing.T) {
	for code, want := range map[notation.ExitCode]string{{}: "0:0", {Status: 7}: "7:0", {Signal: 9}: "0:9", {Status: 1, Signal: 2}: "1:2"} {
		if got := code.String(); got != want {
			t.Errorf("%+v is %s, want %s", code, got, want)
		}
	}
}

// Signals by name, with and without SIG, and by number.
func TestParseSignal(t *testing.T) {
	for text, want := range map[string]int{
		"KILL": 9, "SIGKILL": 9, "sigterm": 15, "int": 2, "9": 9, "64": 64, "USR1": 10, "Xcpu": 24, "": 0, "0": 0, "65": 0, "NOPE": 0, "-9": 0,
		"SIG": 0, "SIGSIGINT": 0,
	} {
		got, err := notation.ParseSignal(text)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
}
