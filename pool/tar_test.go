package pool

import (
	"archive/tar"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/execution"
)

// archive makes a tar archive of files and links, in this order.
func archive(t *testing.T, path string, entries ...tar.Header) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	for _, h := range entries {
		h.Size, h.Mode = int64(len(h.Name)), 0o600
		if h.Typeflag != tar.TypeReg {
			h.Size = 0
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(h.Name[:h.Size])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// The folder that a task left is unpacked within itself: its links, which tasks may follow, lead its own files nowhere else
// in the run's directory.
func TestArchiveThatWritesThroughItsLinks(t *testing.T) {
	t.Parallel()
	p := newTrip(t)
	job := execution.Job{Run: 7, Seq: 3, Dir: p.run, Tasks: []execution.Task{{ID: "t", Attempt: 1, Outputs: []string{"a/b"}}}}
	journal := filepath.Join(p.run, "journal")
	if err := errors.Join(os.WriteFile(journal, []byte("what was"), 0o600), Pack(p.parcel, job), os.Mkdir(filepath.Join(p.parcel, ParcelOut), 0o700)); err != nil {
		t.Fatal(err)
	}
	archive(t, filepath.Join(p.parcel, ParcelOut, "0"),
		tar.Header{Typeflag: tar.TypeSymlink, Name: "up", Linkname: "../../../.."},
		tar.Header{Typeflag: tar.TypeReg, Name: "up/journal"})
	back := parcelResult{Tasks: []parcelTask{{Result: execution.Result{Attempt: 1, Status: execution.Done}, Files: []parcelItem{{Name: "a/b", At: "0", Tar: true}}}}}
	if err := writeJSON(filepath.Join(p.parcel, ParcelResult), back); err != nil {
		t.Fatal(err)
	}
	results, err := Unpack(p.parcel, job)
	if err != nil || len(results) != 1 || results[0].Status != execution.Failed {
		t.Errorf("Unpack() = %+v, %v, want a failure", results, err)
	}
	if got := read(t, journal); got != "what was" {
		t.Errorf("the journal is %q", got)
	}
}

// A task that asks which of two files is newer gets the same answer where its files travelled.
func TestFilesAreAsOldWhereTheyTravelled(t *testing.T) {
	t.Parallel()
	b, scratch := newBlindBed(t, Config{})
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, name := range []string{"file", "tree/leaf"} {
		b.data(t, name, name)
		if err := os.Chtimes(filepath.Join(b.dir, dataDir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	j := sh(1, b.dir, "stat -L -c %Y file tree/leaf; mkdir there; touch -d @1000 alone there/leaf")
	j.Tasks[0].Inputs, j.Tasks[0].Outputs = []string{"file", "tree"}, []string{"alone", "there"}
	b.d.Submit([]execution.Job{j})
	if got := b.sink.awaitResults(t, 1)[1]; got.Status != execution.Done {
		t.Fatalf("result = %+v, want done", got)
	}
	if got := strings.Fields(read(t, b.dir, tasksDir, j.Tasks[0].ID+".1", "stdout")); len(got) != 2 || got[0] != "981173106" || got[1] != got[0] {
		t.Errorf("inputs are of %q, want 981173106 twice", got)
	}
	for _, name := range []string{"alone", "there/leaf"} {
		if info, err := os.Stat(filepath.Join(b.dir, dataDir, name)); err != nil || info.ModTime().Unix() != 1000 {
			t.Errorf("%s is of %v (%v), want 1000 s after the epoch", name, info, err)
		}
	}
	nothingLeft(t, b, scratch)
}
