package wfformat

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
)

// slow returns a few bytes at a time, so that counted texts span reads.
type slow struct{ *strings.Reader }

func (s slow) Read(p []byte) (int, error) { return iotest.OneByteReader(s.Reader).Read(p) }

func TestCountTasks(t *testing.T) {
	t.Parallel()
	task := `{"name": "a", "id": "a", "parents": [], "children": [], "inputFiles": []}` + "\n"
	text := strings.Repeat(task, 3000)
	if got := countTasks(strings.NewReader(text), 1<<30); got != 3000 {
		t.Errorf("%d tasks, want 3000", got)
	}
	if got := countTasks(slow{strings.NewReader(text)}, 1<<30); got != 3000 {
		t.Errorf("%d tasks byte by byte, want 3000", got)
	}
	again := bytes.NewReader([]byte("xx" + text))
	if _, err := again.Seek(2, 0); err != nil {
		t.Fatal(err)
	}
	if countTasks(again, 1<<30); again.Len() != len(text) {
		t.Errorf("%d bytes are left, want %d", again.Len(), len(text))
	}
	hostile := strings.Repeat(`"parents"`, 1000) // the count never exceeds what is possible
	if got := countTasks(strings.NewReader(hostile), 1<<30); got > len(hostile)/64 {
		t.Errorf("%d tasks in %d bytes", got, len(hostile))
	}
	if got := countTasks(strings.NewReader(text), 1000); got > 1000 {
		t.Errorf("%d tasks after the limit", got)
	}
}
