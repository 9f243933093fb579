package cli

import (
	"fmt"
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
