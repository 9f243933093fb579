package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The first side is the reference for the others; a missing measurement is shown as a dash.
func TestReport(t *testing.T) {
	ms := func(list ...int) (d []time.Duration) {
		for _, n := range list {
			d = append(d, time.Duration(n)*time.Millisecond)
		}
		return d
	}
	got := report([]measured{
		{name: "shim", plan: plan{jobs: 100}, submits: ms(9, 5, 7), noops: ms(30, 20), queues: ms(150), pending: 10_000,
			jobs: 51 * time.Second, makeflow: 52 * time.Second},
		{name: "other", plan: plan{jobs: 10}, submits: ms(10), noops: ms(2000), jobs: 100 * time.Second,
			makeflow: 104 * time.Second},
	})
	want := `|  | shim | other |
| --- | --- | --- |
| sbatch, ms, median | 7.0 | 10.0 |
| sbatch -W of no work, ms, median | 20.0 | 2000.0 |
| squeue of pending jobs, ms, median | 150.0 (of 10000) | – |
| sleeping jobs by sbatch | 100 in 51.0 s: 98 % | 10 in 100.0 s: 5 % |
| sleeping jobs by Makeflow | 100 in 52.0 s: 96 % | 10 in 104.0 s: 5 % |
| Makeflow's jobs a second ÷ this side's | 1.0 | 20.0 |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-jobs", "-1"}, {"-deferred", "0"}, {"-rules", "-1"}, {"more"}, {"-x"}} {
		var stdout, stderr bytes.Buffer
		if code := execute(t.Context(), args, &stdout, &stderr); code != 2 || stderr.Len() == 0 || stdout.Len() > 0 {
			t.Errorf("%v: exit code %d, %q and %q", args, code, &stdout, &stderr)
		}
	}
}

// Snakemake's starts share the CPUs with the work.
func TestReportSnakemake(t *testing.T) {
	var got bytes.Buffer
	reportSnakemake(&got, []pipeline{{side: "shim", way: "--slurm", rules: 100, took: 200 * time.Second,
		start: 500 * time.Millisecond, starts: 202, asks: 180, late: 33 * time.Second}})
	want := "| shim | --slurm | 100 | 200.0 | 50.0 | 202 | 0.50 | 50.5 | 50 % | 180 | 33.0 |\n"
	if !strings.HasSuffix(got.String(), "|\n"+want) {
		t.Errorf("%s\nshould end with\n%s", &got, want)
	}
}

// The gathered file contains the time at which each file was written; a missing file is an error.
func TestWrittenIn(t *testing.T) {
	for text, fails := range map[string]bool{"0 1700000000.5\n1 1700000001.250000000\n": false,
		"0 1700000000.5\n": true, "1 1700000001.2\n0 1700000000.5\n": true, "0 x\n1 y\n": true, "": true} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "all.txt"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		written, err := writtenIn(dir, 2)
		if (err != nil) != fails {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && written[1].Sub(written[0]) != 750*time.Millisecond {
			t.Errorf("%q: %v", text, written)
		}
	}
}
