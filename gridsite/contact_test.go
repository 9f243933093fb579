package gridsite_test

import (
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

func TestBadContacts(t *testing.T) {
	t.Parallel()
	for _, contact := range []string{
		"", "local", "host", "gopher://host", "ssh://", "ssh://-o@host", "ssh://host:0", "ssh://host:99999", "ssh://host/path", "ssh://host?x",
		"ssh://a b", "ssh://a%C2%85b@host", "ssh://user:word@host",
		"ssh://u:secret@host", "ssh://u:secret@host/path", "ssh://u:secret@a b", "ssh://u:%secret@host", "u:secret@host", "ssh://u:s@secret@host",
	} {
		_, err := gridsite.ParseContact(contact)
		if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), "contact: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("ParseContact(%q) = %v, want it invalid, without a password", contact, err)
		}
	}
}

// A site that names a missing backend is refused.
func TestBackendsThatAreMissing(t *testing.T) {
	t.Parallel()
	var none gridsite.Backends
	if _, err := none.Dial("local", "local:"); corral.KindOf(err) != corral.Invalid {
		t.Errorf("Dial = %v", err)
	}
	if _, err := none.Access(nil, corral.Site{Batch: "fork"}); corral.KindOf(err) != corral.Invalid {
		t.Errorf("Access = %v", err)
	}
}
