package input_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/internal/kit/input"
)

func TestTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string // the first column
		line int
		err  string
	}{
		{"a,b\n1,2\n\"3\n\",4\n5,6\n", []string{"1", "3\n", "5"}, 0, ""},
		{"a,b\n", nil, 0, ""},
		{"", nil, 0, "the file is empty"},
		{"a,c\n1,2\n", nil, 1, "the first line is not a,b"},
		{"a\n", nil, 1, "the number of fields is not 2"},
		{"a,b\n1,2\n3\n", []string{"1"}, 3, "the number of fields is not 2"},
		{"a,b\n1,2\n\"3\n", []string{"1"}, 3, "extraneous or missing \" in quoted-field"},
		{"a,b\n\"\n\",2\nstop,6\n", []string{"\n", "stop"}, 4, "stop"},
		{"a,b\n" + strings.Repeat("1", 100), nil, 0, "longer than 64 bytes"},
	} {
		var got []string
		line, err := input.Table(strings.NewReader(c.text), 64, []string{"a", "b"}, func(record []string) error {
			got = append(got, record[0])
			if record[0] == "stop" {
				return errStop
			}
			return nil
		})
		said := ""
		if err != nil {
			said = err.Error()
		}
		if !slices.Equal(got, c.want) || line != c.line || said != c.err {
			t.Errorf("Table(%.20q) = %q, line %d, %v; want %q, %d, %q", c.text, got, line, err, c.want, c.line, c.err)
		}
		if c.err == "stop" && !errors.Is(err, errStop) {
			t.Errorf("the error of each is wrapped: %v", err)
		}
	}
}
