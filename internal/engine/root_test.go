//go:build sites

package engine

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// A root may begin with a variable, as a login at the site has it; nothing else in it means anything to a shell.
func TestRootWithAVariableOfTheSite(t *testing.T) {
	t.Parallel()
	d := gridsitetest.StartSSHD(t, "SetEnv SCRATCH=/big/ann RELATIVE=big/ann ALL=/")
	reach := NewReach(backends(d.Home))
	defer reach.Close()
	for _, tt := range []struct {
		root, want string
		kind       corral.Kind
	}{
		{root: "$SCRATCH/corral", want: "/big/ann/corral"},
		{root: "$SCRATCH", want: "/big/ann"},
		{root: "$SCRATCH/$HOME/`id`", want: "/big/ann/$HOME/`id`"},
		{root: "$NOT_THERE/corral", kind: corral.Invalid},
		{root: "$RELATIVE/corral", kind: corral.Invalid},
		{root: "$ALL", kind: corral.Invalid},
	} {
		got, err := reach.ExpandRoot(t.Context(), corral.Site{Contact: d.Contact(), Batch: "fork", HeadBatch: "fork", Root: tt.root}, false)
		if got != tt.want || err == nil && tt.kind != "" || err != nil && corral.KindOf(err) != tt.kind {
			t.Errorf("ExpandRoot(%s) = %q, %v, want %q and kind %q", tt.root, got, err, tt.want, tt.kind)
		}
	}
}
