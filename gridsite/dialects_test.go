package gridsite_test

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

func TestDialUnknown(t *testing.T) {
	for _, contact := range []string{"", "local", "ssh://", "ssh://host/path", "ssh://user:word@host", "ssh://-o@host", "gopher://host"} {
		_, err := gridsite.Dial(t.Context(), contact)
		if corral.KindOf(err) != corral.Invalid {
			t.Errorf("Dial(%q) = %v, want an invalid error", contact, err)
		}
	}
}
