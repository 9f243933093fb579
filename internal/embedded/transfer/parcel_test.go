package transfer

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
)

// TestMaliciousParcel: a malicious parcel cannot harm the run's directory or files outside it.
func TestMaliciousParcel(t *testing.T) {
	t.Parallel()
	task := execution.Task{ID: "t", Attempt: 1, Outputs: []string{"a/b"}}
	done := func(items ...item) sentResult {
		return sentResult{Tasks: []sentTask{{Result: execution.Result{Attempt: 1, Status: execution.Done}, Files: items}}}
	}
	for name, back := range map[string]sentResult{
		"file that nobody asked for":  done(item{Name: "../../x", At: "0"}),
		"travelled from elsewhere":    done(item{Name: "a/b", At: "../job.json"}),
		"link that travelled":         done(item{Name: "a/b", At: "link"}),
		"archive with a way out":      done(item{Name: "a/b", At: "evil", Tar: true}),
		"output that is not there":    done(),
		"neither file nor a result":   done(item{Name: "a/b", At: "nothing"}),
		"archive that is not one":     done(item{Name: "a/b", At: "0", Tar: true}),
		"folder in place of its file": done(item{Name: "a/b", At: "."}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTrip(t)
			job := execution.Job{Run: 7, Seq: 3, Dir: p.run, Tasks: []execution.Task{task}}
			if err := Pack(t.Context(), p.parcel, job); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(p.parcel, OutDir)
			evil := "mkdir " + out + " && cd " + out + " && echo x >0 && ln -s /etc/passwd link && mkdir e && ln -s ../../../../../.. e/up && tar cf evil -C e up && rm e/up && mkdir e/up && echo x >e/up/stolen && tar rf evil -C e up/stolen"
			if text, err := exec.Command("sh", "-c", evil).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if err := writeJSON(filepath.Join(p.parcel, ResultFile), back); err != nil {
				t.Fatal(err)
			}
			results, err := Unpack(p.parcel, job)
			if err != nil || len(results) != 1 || results[0].Status != execution.Failed || results[0].Reason == "" {
				t.Errorf("Unpack() = %+v, %v, want a failure with a reason", results, err)
			}
			absent(t, p.run, executor.DataDir, "a/b")
			absent(t, p.run, "x")
			absent(t, filepath.Dir(p.run), "stolen")
		})
	}
	p := newTrip(t)
	if _, err := Unpack(p.parcel, execution.Job{Dir: p.run, Tasks: []execution.Task{task}}); !errors.Is(err, ErrNoResult) {
		t.Errorf("Unpack of nothing: %v", err)
	}
}

// A trip is a run's directory, a parcel's folder, and a directory on another machine.
type trip struct {
	run, parcel, away string
}

func newTrip(t *testing.T) trip {
	t.Helper()
	dir := t.TempDir()
	p := trip{filepath.Join(dir, "D"), filepath.Join(dir, "D", "jobs", "1"), filepath.Join(dir, "away")}
	for _, folder := range []string{filepath.Join(p.run, executor.DataDir), p.away} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// An output is not published if another worker holds its job by then.
func TestOutputIsNotPublishedAfterTheJobIsLost(t *testing.T) {
	t.Parallel()
	p := newTrip(t)
	job := execution.Job{Run: 7, Seq: 3, Dir: p.run, Tasks: []execution.Task{{ID: "t", Attempt: 1, Outputs: []string{"a", "b"}}}}
	done := sentResult{Tasks: []sentTask{{Result: execution.Result{Attempt: 1, Status: execution.Done}}}}
	if err := errors.Join(Pack(t.Context(), p.parcel, job), os.Mkdir(filepath.Join(p.parcel, OutDir), 0o700)); err != nil {
		t.Fatal(err)
	}
	for i, name := range job.Tasks[0].Outputs {
		done.Tasks[0].Files = append(done.Tasks[0].Files, item{Name: name, At: strconv.Itoa(i)})
		if err := os.WriteFile(filepath.Join(p.parcel, OutDir, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeJSON(filepath.Join(p.parcel, ResultFile), done); err != nil {
		t.Fatal(err)
	}
	asked := 0
	_, trouble, err := UnpackWhile(p.parcel, job, func() bool { asked++; return asked < 2 })
	if err != nil || !errors.Is(trouble, executor.ErrStale) {
		t.Errorf("trouble is %v, %v, want %v", trouble, err, executor.ErrStale)
	}
	absent(t, p.run, executor.DataDir, "b")
}

func absent(t *testing.T, elem ...string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(elem...)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there (%v)", filepath.Join(elem...), err)
	}
}
