package wfformat_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

const mib = 1 << 20

// pieces returns a text in reads of at most 100 bytes, and counts the bytes.
type pieces struct {
	io.Reader
	given int64
}

func (p *pieces) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b[:min(len(b), 100)])
	p.given += int64(n)
	return n, err
}

// fill returns n times the byte c.
func fill(n int64, c byte) io.Reader { return io.LimitReader(filling(c), n) }

type filling byte

func (c filling) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(c)
	}
	return len(b), nil
}

// The time for blanks grows linearly with their number: with quadratic growth these four megabytes, which are read byte
// by byte, would take hours.
func TestReadTakesBlanksInTheirTime(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	for i, part := range strings.SplitAfterN(document(task("a", "", ""), ""), ":", 5) {
		if i > 0 {
			text.Write(bytes.Repeat([]byte{' '}, mib-10))
		}
		text.WriteString(part)
	}
	wf, _, err := wfformat.Read(t.Context(), iotest.OneByteReader(&text), "w.json", workflow.Options{})
	if err != nil || len(wf.Tasks) != 1 {
		t.Errorf("Read = %v", err)
	}
}

// A value is held in memory as a whole, as are consecutive blanks. If either is too long, it is not read to its end.
func TestReadBoundsAValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before string
		fill   byte
		place  string
		says   string
	}{
		"blanks":             {`{`, ' ', "w.json:1:2", "more than 1 MiB of whitespace"},
		"newlines":           {"{\n", '\n', "w.json:1:2", "more than 1 MiB of whitespace"},
		"a text":             {`{"name": "`, 'x', "w.json:1:9", "a value is longer than 2 MiB"},
		"an unknown field":   {`{"more": [`, '1', "w.json:1:9", "a value is longer than 2 MiB"},
		"a task":             {`{"workflow": {"specification": {"tasks": [` + "\n" + `{"id": "`, 'x', "w.json:2:1", "a value is longer than 2 MiB"},
		"blanks at the end":  {strings.TrimSpace(document(task("a", "", ""), "")), ' ', "", "more than 1 MiB of whitespace"},
		"blanks and nothing": {"", ' ', "w.json:1:1", "more than 1 MiB of whitespace"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := &pieces{Reader: io.MultiReader(strings.NewReader(c.before), fill(100*mib, c.fill))}
			_, _, err := wfformat.Read(t.Context(), text, "w.json", workflow.Options{MaxValue: 2 * mib})
			if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), c.place) ||
				!strings.HasSuffix(err.Error(), ": "+c.says) {
				t.Errorf("Read = %v, want %s: %s", err, c.place, c.says)
			}
			if text.given > 8*mib {
				t.Errorf("%d MiB were read", text.given/mib)
			}
		})
	}
}

func TestReadBoundsTheTasks(t *testing.T) {
	t.Parallel()
	three := task("a", "", "") + ",\n" + task("b", "", "") + ",\n" + task("c", "", "")
	for want, text := range map[string]string{
		"w.json:4: the workflow has more than 2 tasks":               document(three, ""),
		"w.json:6: the workflow has executions of more than 2 tasks": document(task("a", "", ""), strings.Repeat("{\"id\": \"a\"},\n", 3)),
	} {
		if _, _, err := readString(text, workflow.Options{MaxTasks: 2}); corral.KindOf(err) != corral.Invalid || err.Error() != want {
			t.Errorf("Read = %v, want %s", err, want)
		}
	}
	if _, _, err := readString(document(three, ""), workflow.Options{MaxTasks: 3}); err != nil {
		t.Error(err)
	}
}

var errStop = errors.New("stop")

// If a caller cancels the reading, the error is not about the document.
func TestTheEndOfAContextEndsReading(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var tasks strings.Builder
	for i := range 1000 {
		tasks.WriteString(task(fmt.Sprint("t", i), "", "") + ",\n")
	}
	text := io.MultiReader(strings.NewReader(document(tasks.String(), "")[:tasks.Len()]), stopping{cancel}, fill(100*mib, ' '))
	_, _, err := wfformat.Read(ctx, text, "w.json", workflow.Options{})
	if !errors.Is(err, errStop) || corral.KindOf(err) != corral.Internal {
		t.Errorf("Read = %v (%s), want the end of the context", err, corral.KindOf(err))
	}
}

// A stopping is a reader that cancels its context when it is read.
type stopping struct{ cancel context.CancelCauseFunc }

func (s stopping) Read([]byte) (int, error) { s.cancel(errStop); return 0, io.EOF }

// Invalid UTF-8 is refused with its position: the decoder would read other ids than those in the file. The division of
// the text into reads does not matter.
func TestReadRefusesWhatIsNotUTF8(t *testing.T) {
	t.Parallel()
	text := document(task("a", "", "")+",\n"+task("b\xffc", "", ""), "")
	_, _, err := readString(text, workflow.Options{})
	if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), "w.json:3:") ||
		!strings.HasSuffix(err.Error(), ": the text is not UTF-8; convert the file") {
		t.Errorf("Read = %v", err)
	}
	for n := range 9 {
		wide := document(task("a", "", "")+",\n"+strings.Repeat(" ", n)+task(strings.Repeat("ä€😀", 20_000), "", ""), "")
		if _, _, err := readString(wide, workflow.Options{}); err != nil {
			t.Errorf("Read, with characters of several bytes behind %d blanks: %.300v", n, err)
		}
		short := wide[:strings.LastIndex(wide, "😀")+n%3+1]
		if _, _, err := readString(short, workflow.Options{}); corral.KindOf(err) != corral.Invalid {
			t.Errorf("Read of the beginning of a character = %.300v", err)
		}
	}
}
