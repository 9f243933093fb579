package wfformat

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/workflow"
)

// If one element is refused and another is invalid JSON, the earlier of the two is reported, and the elements before it
// have been taken once and in order, however far ahead the decoding is.
func TestArrayIsTakenInOrder(t *testing.T) {
	errRefused := errors.New("refused")
	rapid.Check(t, func(t *rapid.T) {
		most := 4 * aheadBytes / len(`"00000",`)
		n := rapid.IntRange(0, most).Draw(t, "n")
		broken := rapid.IntRange(0, 2*most).Draw(t, "broken")
		refused := rapid.IntRange(0, 2*most).Draw(t, "refused")
		var text strings.Builder
		text.WriteString("[")
		for i := range n {
			if i > 0 {
				text.WriteString(",\n")
			}
			if i == broken {
				text.WriteString("0")
			} else {
				fmt.Fprintf(&text, `"%05d"`, i)
			}
		}
		text.WriteString("]")

		taken := 0
		d := newDocument(strings.NewReader(text.String()), "a.json", workflow.DefaultMaxValue)
		err := array(d, func(v *string, at workflow.Place) error {
			if want := fmt.Sprintf("%05d", taken); *v != want || at.Line != taken+1 {
				t.Fatalf("%v: took %q, want %q", at, *v, want)
			}
			if taken == refused {
				return errRefused
			}
			taken++
			return nil
		})("all")
		if want := min(n, broken, refused); taken != want {
			t.Fatalf("took %d, want %d", taken, want)
		}
		want := fmt.Sprintf("a.json:%d: all[]: found number, want a string", broken+1)
		switch {
		case n <= min(broken, refused):
			if err != nil {
				t.Fatalf("got %v", err)
			}
		case broken <= refused:
			if err == nil || err.Error() != want {
				t.Fatalf("got %v, want %s", err, want)
			}
		case !errors.Is(err, errRefused):
			t.Fatalf("got %v", err)
		}
	})
}
