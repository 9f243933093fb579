package run

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
)

var sampleRecords = []execution.Record{
	{At: 1000, CPUs: 2},
	{At: 1001, Met: &execution.Meeting{Worker: "w1", CPUs: 2}},
	{At: 1002, Assigned: &execution.Assignment{Seq: 1, Worker: "w1", Parts: []execution.Part{{Task: 0, Attempt: 1}, {Task: 1, Attempt: 1}}}},
	{At: 1003, Finished: &execution.Outcome{Seq: 1, Task: 0, Attempt: 1, Status: execution.Failed, Exit: 1, Signal: "SEGV", Reason: "a\nb \"c\"", Worker: "w1", Started: 1002, Ended: 1003, Used: execution.Used{CPU: 4, RSSKiB: 5}}},
	{At: 1004, Returned: &execution.Giveback{Seqs: []int64{1}, Started: true, Reason: "lost"}},
	{At: 1005, Gap: &execution.Gap{Seq: 99, Floors: []execution.Part{{Task: 1, Attempt: 3}}}},
	{At: 1006, Resumed: true},
}

func writeJournal(t *testing.T, path string, records ...execution.Record) []byte {
	t.Helper()
	j, cut, err := openJournal(quiet(), path, time.Now(), func(execution.Record) {})
	if err != nil || cut {
		t.Fatalf("openJournal: cut %v, %v", cut, err)
	}
	if err := errors.Join(j.append(records...), j.close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func replayed(t *testing.T, path string) (records []execution.Record, cut bool) {
	t.Helper()
	j, cut, err := openJournal(quiet(), path, time.Now(), func(r execution.Record) { records = append(records, r) })
	if err != nil {
		t.Fatal(err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	return records, cut
}

func TestJournalReplaysWhatWasAppended(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	writeJournal(t, path, sampleRecords[:3]...)
	writeJournal(t, path, sampleRecords[3:]...)
	got, cut := replayed(t, path)
	if diff := cmp.Diff(sampleRecords, got); cut || diff != "" {
		t.Errorf("cut %v, records (-want +got):\n%s", cut, diff)
	}
}

// For any length at which a write was interrupted, the journal opens with all complete records, keeps the rest in a
// separate file, and accepts new records.
func TestJournalIsCutAtItsLastGoodRecord(t *testing.T) {
	t.Parallel()
	whole := writeJournal(t, filepath.Join(t.TempDir(), "journal"), sampleRecords[:3]...)
	for n := range whole {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		want := bytes.Count(whole[:n], []byte("\n"))
		torn := whole[bytes.LastIndexByte(whole[:n], '\n')+1 : n]
		got, cut := replayed(t, path)
		if diff := cmp.Diff(sampleRecords[:want], got); len(got)+want > 0 && diff != "" || cut != (len(torn) > 0) {
			t.Fatalf("cut at %d: cut %v, records (-want +got):\n%s", n, cut, diff)
		}
		writeJournal(t, path, sampleRecords[0])
		if got, cut = replayed(t, path); len(got) != want+1 || cut {
			t.Fatalf("cut at %d: %d records after one more, cut %v; want %d", n, len(got), cut, want+1)
		}
		bad, err := filepath.Glob(path + ".bad-*")
		if err != nil || len(bad) != min(len(torn), 1) {
			t.Fatalf("cut at %d: quarantined %v, %v", n, bad, err)
		}
		if len(bad) == 1 {
			if kept, err := os.ReadFile(bad[0]); err != nil || !bytes.Equal(kept, torn) {
				t.Fatalf("cut at %d: kept %q, %v; want %q", n, kept, err, torn)
			}
		}
	}
}

func TestJournalFindsDamage(t *testing.T) {
	t.Parallel()
	whole := writeJournal(t, filepath.Join(t.TempDir(), "journal"), sampleRecords...)
	for at := range whole {
		text := bytes.Clone(whole)
		text[at] ^= 1
		var got []execution.Record
		good, err := readJournal(bytes.NewReader(text), func(r execution.Record) { got = append(got, r) })
		line := bytes.Count(whole[:at], []byte("\n"))
		if !errors.Is(err, errBad) || len(got) != line || good > int64(at) {
			t.Fatalf("damage at %d: %d records, good up to %d, error %v; want %d records", at, len(got), good, err, line)
		}
	}
}

func TestJournalSurvivesJunk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	whole := writeJournal(t, path, sampleRecords...)
	if err := os.WriteFile(path, append(whole, bytes.Repeat([]byte{'x'}, 10<<20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, cut := replayed(t, path); !cut || len(got) != len(sampleRecords) {
		t.Errorf("%d records, cut %v; want %d", len(got), cut, len(sampleRecords))
	}
	if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, whole) {
		t.Errorf("%d bytes are left, %v; want the %d of the records", len(left), err, len(whole))
	}
}

// Records that have had effects are cut out of the journal: the numbers that they may have used are not reused.
func TestDamagedJournalLeavesGap(t *testing.T) {
	t.Parallel()
	row := corral.Run{ID: 1, Dir: filepath.Join(t.TempDir(), "d"), Options: mustOptions("none")}
	l := layout{row.Dir}
	if err := l.create(text(string(document(fan(3, 1)...))), nil); err != nil {
		t.Fatal(err)
	}
	whole := writeJournal(t, l.path(journalFile),
		execution.Record{Assigned: &execution.Assignment{Seq: 1, Worker: "w", Parts: []execution.Part{{Task: 0, Attempt: 1}}}},
		execution.Record{Finished: &execution.Outcome{Seq: 1, Task: 0, Attempt: 1, Status: execution.Done, Started: 1, Ended: 2}},
		execution.Record{Assigned: &execution.Assignment{Seq: 2, Worker: "w", Parts: []execution.Part{{Task: 1, Attempt: 1}}}},
		execution.Record{Assigned: &execution.Assignment{Seq: 3, Worker: "w", Parts: []execution.Part{{Task: 2, Attempt: 1}}}},
		execution.Record{Returned: &execution.Giveback{Seqs: []int64{3}, Started: true}},
		execution.Record{Assigned: &execution.Assignment{Seq: 4, Worker: "w", Parts: []execution.Part{{Task: 2, Attempt: 2}}}})
	for _, attempt := range []string{"a.1", "m0.1", "m1.1", "m1.2", "foreign"} {
		if err := os.Mkdir(filepath.Join(row.Dir, executor.TasksDir, attempt), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines[3][0] ^= 1 // all records about m1 are lost
	if err := os.WriteFile(l.path(journalFile), bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	s, j, err := openState(t.Context(), quiet(), row, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	again, err := readState(t.Context(), row)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*state{s, again} {
		var released []execution.Part
		for _, j := range s.x.Release(time.UnixMilli(1<<40), execution.Offer{}) {
			for _, task := range j.Tasks {
				released = append(released, execution.Part{Task: int32(task.Index), Attempt: int32(task.Attempt)})
			}
			if j.Seq < 1<<32 {
				t.Errorf("job number %d may have been used", j.Seq)
			}
		}
		slices.SortFunc(released, func(a, b execution.Part) int { return int(a.Task - b.Task) })
		if diff := cmp.Diff([]execution.Part{{Task: 2, Attempt: 3}, {Task: 3, Attempt: 1}}, released); diff != "" {
			t.Errorf("released (-want +got):\n%s", diff)
		}
		if held := s.x.Expected()["w"]; len(held) != 1 || held[0].Seq != 2 {
			t.Errorf("expected back: %+v, want job 2", held)
		}
	}
}

// A full disk refuses the batch, and no record is lost or duplicated.
func TestJournalWriteFails(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	j := &journal{file: full}
	if err := j.append(sampleRecords...); err == nil || j.end != 0 {
		t.Errorf("append to a full disk: %v, end %d", err, j.end)
	}
	if err := errors.Join(j.close(), j.close()); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := j.append(sampleRecords...); !errors.Is(err, errClosed) {
		t.Errorf("append after close: %v", err)
	}
}

func FuzzJournal(f *testing.F) {
	dir := f.TempDir()
	j, _, err := openJournal(quiet(), filepath.Join(dir, "journal"), time.Now(), func(execution.Record) {})
	if err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(j.append(sampleRecords...), j.close()); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "journal"))
	if err != nil {
		f.Fatal(err)
	}
	var bodies []byte
	for line := range bytes.Lines(whole) {
		bodies = append(bodies, line[9:]...)
	}
	f.Add(whole, false)
	f.Add(whole[:len(whole)/2], false)
	f.Add([]byte("00000000 {}\n\n"), false)
	f.Add(bodies, true)
	p := mustPlan(f, mustOptions("horizontal=2"), fan(3, 1)...)
	f.Fuzz(func(t *testing.T, text []byte, seal bool) {
		if seal {
			text = sealed(text)
		}
		s := newState(p)
		good, err := readJournal(bytes.NewReader(text), s.replay) // records in any order must not cause a panic
		if good < 0 || good > int64(len(text)) || err == nil && good != int64(len(text)) {
			t.Fatalf("good up to %d of %d, error %v", good, len(text), err)
		}
		n := 0
		again, err := readJournal(bytes.NewReader(text[:good]), func(execution.Record) { n++ })
		if err != nil || again != good {
			t.Fatalf("the good part is read up to %d of %d: %v", again, good, err)
		}
		c := s.x.Counts()
		if sum := c.Waiting + c.Ready + c.Running + c.Done + c.Failed + c.Skipped; sum != c.Total || c.Ready < 0 {
			t.Fatalf("counts %+v", c)
		}
	})
}

// sealed converts each line of text to a line of a journal.
func sealed(text []byte) []byte {
	var lines []byte
	for body := range bytes.Lines(text) {
		body = bytes.TrimSuffix(body, []byte("\n"))
		lines = fmt.Appendf(lines, "%08x %s\n", checksum(body), body)
	}
	return lines
}

// A full disk may have room for a short record, but not for the one that failed: the journal is writable again only
// when a write of the same length succeeds.
func TestCheckWritesAsMuchAsFailed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, _, err := openJournal(quiet(), path, time.Now(), func(execution.Record) {})
	if err != nil {
		t.Fatal(err)
	}
	j.torn = 5000
	if err := errors.Join(j.check(time.UnixMilli(7)), j.check(time.UnixMilli(8)), j.close()); err != nil {
		t.Fatal(err)
	}
	var got []execution.Record
	again, cut, err := openJournal(quiet(), path, time.Now(), func(r execution.Record) { got = append(got, r) })
	if err != nil || cut {
		t.Fatalf("openJournal: cut %v, %v", cut, err)
	}
	if again.end < 5000 || !cmp.Equal(got, []execution.Record{{At: 7}}) {
		t.Errorf("the journal has %d bytes and %v, want one record of 5,000", again.end, got)
	}
	if err := again.close(); err != nil {
		t.Error(err)
	}
}
