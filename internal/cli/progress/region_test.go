package progress_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/internal/cli/progress"
)

// A screen is a simulated terminal with the features that this package uses.
type screen struct {
	rows [][]rune
	row  int
	col  int
}

func (s *screen) Write(b []byte) (int, error) {
	for text := []rune(string(b)); len(text) > 0; {
		if text[0] == '\x1b' {
			end := strings.IndexAny(string(text), "AKJm")
			s.escape(string(text)[2:end], string(text)[end])
			text = []rune(string(text)[end+1:])
			continue
		}
		s.put(text[0])
		text = text[1:]
	}
	return len(b), nil
}

// line returns the row of the cursor.
func (s *screen) line() []rune {
	for len(s.rows) <= s.row {
		s.rows = append(s.rows, nil)
	}
	return s.rows[s.row]
}

func (s *screen) put(r rune) {
	line := s.line()
	switch r {
	case '\n':
		s.row, s.col = s.row+1, 0
	case '\r':
		s.col = 0
	default:
		for len(line) <= s.col {
			line = append(line, ' ')
		}
		line[s.col] = r
		s.rows[s.row] = line
		s.col++
	}
}

func (s *screen) escape(parameter string, command byte) {
	switch command {
	case 'A':
		n, err := strconv.Atoi(parameter)
		if err != nil || n > s.row {
			panic(fmt.Sprintf("up by %q from row %d", parameter, s.row))
		}
		s.row -= n
	case 'K':
		line := s.line()
		s.rows[s.row] = line[:min(s.col, len(line))]
	case 'J':
		s.rows = s.rows[:min(s.row, len(s.rows))]
	}
}

func (s *screen) String() string {
	var b strings.Builder
	for _, r := range s.rows {
		b.WriteString(string(r) + "\n")
	}
	return b.String()
}

// After any sequence of drawings, the screen shows the text written before, then the last drawing.
func TestRegion(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &screen{}
		want := "" // the text that remains
		region := progress.NewRegion(s)
		var drawn string
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"draw", "draw", "draw", "clear and write", "keep"}).Draw(t, "step") {
			case "draw":
				lines := rapid.SliceOfN(rapid.StringMatching(`[a-z█]{0,9}`), 0, 4).Draw(t, "lines")
				region.Draw(lines...)
				drawn = ""
				for _, l := range lines {
					drawn += l + "\n"
				}
			case "clear and write":
				region.Clear()
				fmt.Fprintln(s, "written")
				want, drawn = want+"written\n", ""
			case "keep":
				region.Keep()
				want, drawn = want+drawn, ""
			}
			if got := s.String(); got != want+drawn {
				t.Fatalf("the screen shows\n%s\nwant\n%s", got, want+drawn)
			}
		}
	})
}

// Unchanged lines are not drawn again.
func TestRegionDrawsChangesOnly(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	region := progress.NewRegion(&out)
	region.Draw("a", "b")
	n := out.Len()
	region.Draw("a", "b")
	if out.Len() != n {
		t.Errorf("the same again wrote %q", out.String()[n:])
	}
	region.Draw("a b")
	if out.Len() == n {
		t.Error("another line wrote nothing")
	}
}
