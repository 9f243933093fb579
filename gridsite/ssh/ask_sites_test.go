//go:build sites

package ssh_test

import (
	"errors"
	"os"
	"testing"

	"github.com/corral-pilot/corral/gridsite"
)

// The key of an unknown host is accepted if the user consents, and a changed key is not.
func TestSSHAcceptHostKeys(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	known := d.SSH("known_hosts")
	d.write(known, d.knows(d.newKey("other", "")))
	var changed *gridsite.HostKeyError
	if err := d.open().Connect(t.Context(), true); !errors.As(err, &changed) || changed.Problem != gridsite.HostKeyChanged {
		t.Errorf("a host that is known by another key: %v", err)
	}
	d.write(known, "# without an end")
	if err := d.open().Connect(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(known); err != nil || string(content) != "# without an end\n"+d.KnownLine(t) {
		t.Errorf("known_hosts is %q (%v)", content, err)
	}
	if err := os.RemoveAll(known); err != nil {
		t.Fatal(err)
	}
	conn := d.open()
	hostKeyError(t, conn, gridsite.HostKeyUnknown)
	if err := conn.Connect(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	expectOutput(t, conn, "echo ok", "ok\n")
	if err := d.open().Connect(t.Context(), false); err != nil {
		t.Errorf("the next login: %v", err)
	}
}
