package access

import (
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
)

// An owner may have as many objects as the quota, and the error names the command that makes room. Quotas that are not
// set, and corrald's own user, have no limit.
func TestQuotas(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, owner string
		most        Most
		has, more   int
		want        string // part of the error; empty: allowed
	}{
		{"sites", "ann", Most{"sites": 3}, 1, 2, ""},
		{"sites", "ann", Most{"sites": 3}, 2, 2, "ann has 2 sites, and an owner may have 3 (--max-sites): `corral site remove"},
		{"sites", "ann", Most{"sites": 3}, 3, 0, ""},
		{"runs-open", "ann", Most{"runs-open": 1}, 1, 1, "runs that are not over"},
		{"sites", "ann", Most{"sites": 0, "runs": 1}, 1000, 1, ""},
		{"sites", "ann", nil, 1000, 1, ""},
		{"sites", LocalName, Most{"sites": 3}, 3, 1, ""},
		{"sites", "corrald", Most{"sites": 3}, 3, 1, ""},
	} {
		err := tt.most.Check(tt.name, tt.owner, tt.has, tt.more)
		if (err == nil) != (tt.want == "") || err != nil &&
			(corral.KindOf(err) != corral.Forbidden || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%d more than %d of %s for %s with %v: %v, want %q", tt.more, tt.has, tt.name, tt.owner, tt.most, err, tt.want)
		}
	}
	if err := (Most{"horses": 1}).Check("horses", "ann", 1, 1); corral.KindOf(err) != corral.Internal {
		t.Errorf("a limit on something else: %v", err)
	}
}
