package cli

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/corral-pilot/corral/internal/cli/progress"
)

// A grid lays out a list in columns. It exists for lists of 100,000 tasks, for which a table.Writer, which offers many
// more features, takes half a second longer.
type grid struct {
	header []string
	rows   [][]string
	widths []int  // widths of the columns; 0: the column is empty and is omitted
	words  []bool // whether each column contains cells that are not numbers, and is aligned left
}

func newGrid(header []string) *grid {
	return &grid{header: header, widths: make([]int, len(header)), words: make([]bool, len(header))}
}

// add adds a row with a cell for each column. Line breaks and tabs in a cell become blanks.
func (g *grid) add(cells []any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = progress.Inert(oneLine(fmt.Sprint(cell)))
		g.widths[i] = max(g.widths[i], widthOfText(row[i]))
		g.words[i] = g.words[i] || !isNumber(cell)
	}
	g.rows = append(g.rows, row)
}

// write writes the header and the rows, each cut to a width.
func (g *grid) write(w io.Writer, width int) {
	out := bufio.NewWriter(w)
	for i, name := range g.header {
		if g.widths[i] > 0 {
			g.widths[i] = max(g.widths[i], widthOfText(name))
		}
	}
	var line strings.Builder
	for n := -1; n < len(g.rows); n++ {
		row := g.header
		if n >= 0 {
			row = g.rows[n]
		}
		line.Reset()
		for i, cell := range row {
			g.put(&line, i, cell)
		}
		_, _ = out.WriteString(truncate(strings.TrimRight(line.String(), " "), width))
		_ = out.WriteByte('\n')
	}
	_ = out.Flush() // the printer stores any error of stdout
}

// put appends the cell of a column to a line.
func (g *grid) put(line *strings.Builder, column int, cell string) {
	if g.widths[column] == 0 {
		return
	}
	space := max(0, g.widths[column]-widthOfText(cell))
	if g.words[column] {
		line.WriteString(cell)
		line.WriteString(blanks(space + 2))
		return
	}
	line.WriteString(blanks(space))
	line.WriteString(cell)
	line.WriteString("  ")
}

const someBlanks = "                                                                "

// blanks returns n blanks.
func blanks(n int) string {
	if n <= len(someBlanks) {
		return someBlanks[:n]
	}
	return strings.Repeat(" ", n)
}

// oneLine replaces line breaks and tabs in a text with blanks.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\n\r\t") {
		return s
	}
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ").Replace(s)
}

// widthOfText returns the number of terminal cells that a text occupies.
func widthOfText(s string) int {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return text.StringWidthWithoutEscSequences(s)
		}
	}
	return len(s)
}

func isNumber(cell any) bool {
	k := reflect.ValueOf(cell).Kind()
	return reflect.Int <= k && k <= reflect.Float64
}
