//go:build sites

package schedd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/internal/execution"
)

// A full disk, or whatever else is in the way of the note, is waited for.
func TestJobWaitsUntilItCanBeNoted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 1, nil)
	way := filepath.Join(s.dir, "q")
	if err := os.WriteFile(way, []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, q := newRecorder(), s.queue()
	q.Attach(7, r)
	q.Submit([]execution.Job{sh(s.runDir(), 7, 1, "true")})
	eventually(t, "a try", func() bool { return strings.Contains(s.said.String(), "jobs cannot be submitted now") })
	if err := os.Remove(way); err != nil {
		t.Fatal(err)
	}
	if res := s.result(r); res.Status != execution.Done {
		t.Errorf("result = %+v, want done", res)
	}
}

func TestJobThatCannotBeNotedForLongHasFailed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := os.WriteFile(filepath.Join(s.dir, "q"), []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, q := newRecorder(), s.impatient()
	q.Attach(7, r)
	q.Submit([]execution.Job{sh(s.runDir(), 7, 1, "true")})
	res := s.result(r)
	if res.Status != execution.Failed || !strings.HasPrefix(res.Reason, "its job could not be prepared: ") {
		t.Errorf("result = %+v, want failure", res)
	}
}

// A note that says nothing may have named jobs that are in the schedd: nothing is submitted under another name.
func TestDamagedNoteIsNotReplaced(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	file := filepath.Join(s.dir, "q", "7", "run.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, q := newRecorder(), s.impatient()
	q.Attach(7, r)
	q.Submit([]execution.Job{sh(s.runDir(), 7, 1, "true")})
	res := s.result(r)
	if res.Status != execution.Failed || !strings.Contains(res.Reason, file) {
		t.Errorf("result = %+v, want failure that names the note", res)
	}
	if text := s.read(file); text != "" {
		t.Errorf("the note was replaced by %s", text)
	}
	s.empty()
}
