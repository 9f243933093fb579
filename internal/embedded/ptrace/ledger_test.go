package ptrace

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// On a terminal all three streams lead to the same target: the descriptor's number distinguishes them. Otherwise the
// target identifies the stream, regardless of the number to which the descriptor was duplicated.
func TestStandardStreams(t *testing.T) {
	t.Parallel()
	names := []string{"stdin", "stdout", "stderr"}
	for _, c := range []struct {
		name    string
		targets [3]string
		fd      int
		target  string
		want    string
	}{
		{"terminal", [3]string{"/dev/pts/1", "/dev/pts/1", "/dev/pts/1"}, 2, "/dev/pts/1", "stderr"},
		{"terminal, duplicated", [3]string{"/dev/pts/1", "/dev/pts/1", "/dev/pts/1"}, 10, "/dev/pts/1", "stdin"},
		{"file, duplicated", [3]string{"/in", "pipe:[7]", "/dev/pts/1"}, 10, "pipe:[7]", "stdout"},
		{"swapped", [3]string{"/in", "pipe:[7]", "/dev/pts/1"}, 1, "/dev/pts/1", "stderr"},
		{"replaced", [3]string{"/in", "pipe:[7]", "/dev/pts/1"}, 1, "/out", ""},
		{"nothing", [3]string{"/dev/null", "/dev/null", "/dev/null"}, 0, "/dev/null", ""},
		{"closed", [3]string{"", "/out", "/out"}, 5, "/in", ""},
	} {
		l := newLedger()
		for fd, target := range c.targets {
			l.standard(fd, names[fd], target)
		}
		got := ""
		if e := l.stream(c.fd, []byte(c.target)); e != nil {
			got = e.Path
		}
		if got != c.want {
			t.Errorf("%s: descriptor %d to %s is %q, want %q", c.name, c.fd, c.target, got, c.want)
		}
	}
}

// The sums by kind include the files that do not fit in the list.
func TestSumsAreComplete(t *testing.T) {
	t.Parallel()
	l := newLedger()
	for i := range maxFiles + 3 {
		l.moved(nil, l.add(string(rune('a'+i)), trace.Regular, 1), 2)
	}
	var tr trace.Trace
	l.write(&tr)
	if len(tr.Files) != maxFiles || tr.MoreCalls != 3 {
		t.Errorf("%d files, %d calls without one, want %d and 3", len(tr.Files), tr.MoreCalls, maxFiles)
	}
	want := trace.Sum{Written: 2 * (maxFiles + 3), Writes: maxFiles + 3}
	if diff := cmp.Diff(want, tr.Kinds[trace.Regular]); diff != "" {
		t.Errorf("sum of files, -want +got:\n%s", diff)
	}
}
