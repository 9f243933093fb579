package transfer

import (
	"archive/tar"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/corral-pilot/corral/internal/decide/execution"
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

// The files of a task's folder are unpacked only within the folder: links in it, which tasks may follow, cannot
// redirect these files to another place in the run's directory.
func TestArchiveThatWritesThroughItsLinks(t *testing.T) {
	t.Parallel()
	p := newTrip(t)
	job := execution.Job{Run: 7, Seq: 3, Dir: p.run, Tasks: []execution.Task{{ID: "t", Attempt: 1, Outputs: []string{"a/b"}}}}
	journal := filepath.Join(p.run, "journal")
	if err := errors.Join(os.WriteFile(journal, []byte("what was"), 0o600), Pack(t.Context(), p.parcel, job), os.Mkdir(filepath.Join(p.parcel, OutDir), 0o700)); err != nil {
		t.Fatal(err)
	}
	archive(t, filepath.Join(p.parcel, OutDir, "0"),
		tar.Header{Typeflag: tar.TypeSymlink, Name: "up", Linkname: "../../../.."},
		tar.Header{Typeflag: tar.TypeReg, Name: "up/journal"})
	back := sentResult{Tasks: []sentTask{{Result: execution.Result{Attempt: 1, Status: execution.Done}, Files: []item{{Name: "a/b", At: "0", Tar: true}}}}}
	if err := writeJSON(filepath.Join(p.parcel, ResultFile), back); err != nil {
		t.Fatal(err)
	}
	results, err := Unpack(p.parcel, job)
	if err != nil || len(results) != 1 || results[0].Status != execution.Failed {
		t.Errorf("Unpack() = %+v, %v, want a failure", results, err)
	}
	if got, err := os.ReadFile(journal); string(got) != "what was" {
		t.Errorf("the journal is %q (%v)", got, err)
	}
}
