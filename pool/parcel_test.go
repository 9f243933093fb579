package pool

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/execution"
)

// A trip is a run's directory, the folder of a parcel, and one on another machine.
type trip struct {
	run, parcel, away string
}

func newTrip(t *testing.T) trip {
	t.Helper()
	dir := t.TempDir()
	p := trip{filepath.Join(dir, "D"), filepath.Join(dir, "D", "jobs", "1"), filepath.Join(dir, "away")}
	for _, folder := range []string{filepath.Join(p.run, dataDir), p.away} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// send copies names, as HTCondor does: files that links lead to.
func send(t *testing.T, from, to string, names ...string) {
	t.Helper()
	for _, name := range names {
		if out, err := exec.Command("cp", "-rL", filepath.Join(from, name), to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// job has a job go there and come back.
func (p trip) job(ctx context.Context, t *testing.T, tasks ...execution.Task) []execution.Result {
	t.Helper()
	job := execution.Job{Run: 7, Seq: 3, Dir: p.run, CPUs: 2, Tasks: tasks}
	if err := Pack(p.parcel, job); err != nil {
		t.Fatal(err)
	}
	send(t, p.parcel, p.away, ParcelJob, ParcelIn)
	if err := ExecuteParcel(ctx, p.away, "tag/0"); err != nil {
		t.Fatal(err)
	}
	send(t, p.away, p.parcel, ParcelResult, ParcelOut)
	var results []execution.Result
	for range 2 { // as after a crash in between
		var err error
		if results, err = Unpack(p.parcel, job); err != nil {
			t.Fatal(err)
		}
	}
	return results
}

func TestParcelBringsBackWhatAWorkerLeaves(t *testing.T) {
	t.Parallel()
	p := newTrip(t)
	data := filepath.Join(p.run, dataDir)
	for name, text := range map[string]string{"in/a.txt": "alpha\n", "tree/x/y": "deep\n", "in/run.sh": "#!/bin/sh\necho ran\n", "out/c": "left by an attempt that was cut\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(data, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	results := p.job(t.Context(), t, execution.Task{
		Index: 5, ID: "first", Attempt: 2, Estimate: time.Second, Inputs: []string{"in/a.txt", "tree", "in/run.sh"},
		Outputs: []string{"out/c", "log", "made"}, Stdin: "in/a.txt", Stdout: "log",
		Argv: []string{"sh", "-c", `cat - tree/x/y >out/c; in/run.sh; echo "$CORRAL_RUN $CORRAL_TASK $CORRAL_ATTEMPT $CORRAL_CPUS"; echo oops >&2; mkdir made; echo 1 >made/one; ln -s one made/link`},
	}, execution.Task{Index: 6, ID: "second", Attempt: 1, Argv: []string{"false"}, Estimate: time.Second})
	if len(results) != 2 || results[0].Status != execution.Done || results[0].Worker != "tag/0" || results[0].Key != (execution.Key{Run: 7, Seq: 3}) || results[1].Status != execution.Failed {
		t.Fatalf("results = %+v", results)
	}
	first := filepath.Join(p.run, tasksDir, "first.2")
	for name, want := range map[string]string{
		filepath.Join(data, "out/c"): "alpha\ndeep\n", filepath.Join(data, "log"): "ran\n7 first 2 2\n", filepath.Join(data, "made/link"): "1\n",
		filepath.Join(first, "stderr"): "oops\n", filepath.Join(first, "in/a.txt"): "alpha\n",
	} {
		if got := read(t, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if link, err := os.Readlink(filepath.Join(data, "made", "link")); link != "one" {
		t.Errorf("link = %q, %v", link, err)
	}
	if got := read(t, first, recordFile); !strings.Contains(got, `"task":"first"`) {
		t.Errorf("record = %s", got)
	}
	read(t, p.run, tasksDir, "second.1", "stdout")
}

// TestFailuresAwayAreTheSame compares with what TestTaskThatFails wants of a worker.
func TestFailuresAwayAreTheSame(t *testing.T) {
	t.Parallel()
	for _, tt := range failures() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newTrip(t)
			if err := os.WriteFile(filepath.Join(p.run, dataDir, "in.txt"), []byte("not a program\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			tt.task.Attempt, tt.task.Estimate = 1, time.Second
			if tt.task.ID == "" {
				tt.task.ID = "t"
			}
			results := p.job(t.Context(), t, tt.task)
			if len(results) != 1 || results[0].Status != execution.Failed || results[0].Exit != tt.exit || !strings.Contains(results[0].Reason, tt.want) {
				t.Errorf("results = %+v, want failure with %q and exit %d", results, tt.want, tt.exit)
			}
			absent(t, p.run, dataDir, "out")
			if tt.exit >= 0 {
				read(t, p.run, tasksDir, "t.1", recordFile)
			}
		})
	}
}

func TestParcelThatIsCutOff(t *testing.T) {
	t.Parallel()
	p := newTrip(t)
	ctx, cancel := context.WithCancel(t.Context())
	running := filepath.Join(p.away, "run", tasksDir, "t.1", "running")
	go func() {
		defer cancel()
		for i := 0; i < 12000; i++ {
			if _, err := os.Stat(running); err == nil {
				return
			}
			<-time.After(5 * time.Millisecond)
		}
	}()
	results := p.job(ctx, t, execution.Task{ID: "t", Attempt: 1, Argv: []string{"sh", "-c", "echo >running; sleep 60"}}, execution.Task{Index: 1, ID: "u", Attempt: 1, Argv: []string{"true"}})
	if len(results) != 1 || results[0].Status != execution.Cut {
		t.Errorf("results = %+v, want one that was cut", results)
	}
}

// TestParcelFromAnEnemy shows what a worker cannot do to the run's directory or beyond.
func TestParcelFromAnEnemy(t *testing.T) {
	t.Parallel()
	task := execution.Task{ID: "t", Attempt: 1, Outputs: []string{"a/b"}}
	done := func(items ...parcelItem) parcelResult {
		return parcelResult{Tasks: []parcelTask{{Result: execution.Result{Attempt: 1, Status: execution.Done}, Files: items}}}
	}
	for name, back := range map[string]parcelResult{
		"file that nobody asked for":  done(parcelItem{Name: "../../x", At: "0"}),
		"travelled from elsewhere":    done(parcelItem{Name: "a/b", At: "../job.json"}),
		"link that travelled":         done(parcelItem{Name: "a/b", At: "link"}),
		"archive with a way out":      done(parcelItem{Name: "a/b", At: "evil", Tar: true}),
		"output that is not there":    done(),
		"neither file nor a result":   done(parcelItem{Name: "a/b", At: "nothing"}),
		"archive that is not one":     done(parcelItem{Name: "a/b", At: "0", Tar: true}),
		"folder in place of its file": done(parcelItem{Name: "a/b", At: "."}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTrip(t)
			job := execution.Job{Run: 7, Seq: 3, Dir: p.run, Tasks: []execution.Task{task}}
			if err := Pack(p.parcel, job); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(p.parcel, ParcelOut)
			evil := "mkdir " + out + " && cd " + out + " && echo x >0 && ln -s /etc/passwd link && mkdir e && ln -s ../../../../../.. e/up && tar cf evil -C e up && rm e/up && mkdir e/up && echo x >e/up/stolen && tar rf evil -C e up/stolen"
			if text, err := exec.Command("sh", "-c", evil).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if err := writeJSON(filepath.Join(p.parcel, ParcelResult), back); err != nil {
				t.Fatal(err)
			}
			results, err := Unpack(p.parcel, job)
			if err != nil || len(results) != 1 || results[0].Status != execution.Failed || results[0].Reason == "" {
				t.Errorf("Unpack() = %+v, %v, want a failure with a reason", results, err)
			}
			absent(t, p.run, dataDir, "a/b")
			absent(t, p.run, "x")
			absent(t, filepath.Dir(p.run), "stolen")
		})
	}
	p := newTrip(t)
	if _, err := Unpack(p.parcel, execution.Job{Dir: p.run, Tasks: []execution.Task{task}}); !errors.Is(err, ErrNoResult) {
		t.Errorf("Unpack of nothing: %v", err)
	}
}
