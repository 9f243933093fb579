package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLastLines(t *testing.T) {
	t.Parallel()
	var many, last []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("line %d", i))
	}
	last = many[12:]
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", nil}, {"\n\n", nil}, {"one", []string{"one"}}, {"one\n\ntwo\n\n", []string{"one", "", "two"}},
		{strings.Join(many, "\n") + "\n", last}, {"a\xffb\n", []string{"a?b"}},
	} {
		if diff := cmp.Diff(tt.want, lastLines([]byte(tt.text))); diff != "" {
			t.Errorf("lastLines(%q) (-want +got):\n%s", tt.text, diff)
		}
	}
}

// A form of progress may be left out, wherever the flag stands.
func TestFormsMayBeLeftOut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ line, want string }{
		{"submit --progress -- true", "submit --progress=auto true"},
		{"submit --progress json -- true", "submit --progress json true"},
		{"submit --progress=json -- true", "submit --progress=json true"},
		{"run --progress flow.json", "run --progress=auto flow.json"},
		{"run flow.json --progress", "run --progress=auto flow.json"},
	} {
		if got := strings.Join(parse(newApp(&printer{stdio: stdio{strings.NewReader(""), io.Discard, io.Discard}}), strings.Fields(tt.line)).arguments(), " "); got != tt.want {
			t.Errorf("%s = %s, want %s", tt.line, got, tt.want)
		}
	}
}
