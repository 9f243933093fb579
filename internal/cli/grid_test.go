package cli

import (
	"bytes"
	"testing"
)

// Numbers are aligned right and words left, in any script; empty columns are omitted, and no cell breaks a line or
// controls the terminal.
func TestGrid(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		rows  [][]any
		width int
		want  string
	}{
		{"columns", [][]any{{1, "ab", ""}, {100, "é", ""}}, 99, "  N  WORD\n  1  ab\n100  é\n"},
		{"wide characters", [][]any{{"日本", "x", ""}, {"a", "y", ""}}, 99, "N     WORD\n日本  x\na     y\n"},
		{"lines", [][]any{{1, "a\nb\r\nc\td\x1b[1m", "w"}}, 99, "N  WORD            WHY\n1  a b c d\\x1b[1m  w\n"},
		{"cut", [][]any{{1, "abcdef", ""}}, 6, "N  WO…\n1  ab…\n"},
	} {
		var out bytes.Buffer
		g := newGrid([]string{"N", "WORD", "WHY"})
		for _, row := range tt.rows {
			g.add(row)
		}
		g.write(&out, tt.width)
		if out.String() != tt.want {
			t.Errorf("%s:\n%swant:\n%s", tt.name, out.String(), tt.want)
		}
	}
}
