package shell_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/internal/kit/shell"
)

// A real shell must return every word unchanged after it was quoted, for programs or for people.
func TestAShellReadsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var argvs [][]string
		var script strings.Builder
		for range 20 {
			argv := rapid.SliceOfN(gridsitetest.Word, 1, 5).Draw(t, "argv")
			argvs = append(argvs, argv, argv[:1])
			script.WriteString(`printf '%s\000' ` + shell.Line(argv) + "\n")
			script.WriteString(`printf '%s\000' ` + shell.Legible(argv[0]) + "\n")
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", script.String()).Output()
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, argv := range argvs {
			want = append(want, argv...)
		}
		got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the shell saw (-want +got):\n%s", diff)
		}
	})
}

func TestLegible(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"/usr/bin:/bin": "/usr/bin:/bin", "": "''", "a b": "'a b'", "$HOME": "'$HOME'", "it's": `'it'\''s'`, "~": "'~'",
	} {
		if got := shell.Legible(word); got != want {
			t.Errorf("%q is written as %s, want %s", word, got, want)
		}
	}
}
