package gridsite_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// A real shell must hand back every argument vector exactly as it was quoted.
func TestQuoteRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var argvs [][]string
		var script strings.Builder
		for range 20 {
			argv := rapid.SliceOfN(gridsitetest.Word, 1, 5).Draw(t, "argv")
			argvs = append(argvs, argv)
			script.WriteString(`printf '%s\000' ` + gridsite.QuoteArgv(argv) + "\n")
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
