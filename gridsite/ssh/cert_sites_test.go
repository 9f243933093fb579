//go:build sites

package ssh_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// An invalid certificate beside a key does not prevent the use of the key. The error of a failed login mentions it.
func TestSSHCertificateThatIsNone(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	other := filepath.Join(d.Dir, "other")
	for _, name := range []string{"ca", "other"} {
		gridsitetest.Keygen(t, "-t", "ed25519", "-N", "", "-f", filepath.Join(d.Dir, name))
	}
	gridsitetest.Keygen(t, "-s", filepath.Join(d.Dir, "ca"), "-I", "user", "-n", me(t), other+".pub")
	foreign, err := os.ReadFile(other + "-cert.pub")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"of another key": string(foreign), "garbled": "ssh-ed25519-cert-v01@openssh.com AAAA\n"} {
		d.write(d.SSH("id_ed25519-cert.pub"), content)
		if err := d.open().Connect(t.Context(), false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	d.Authorize(t)
	if err := d.open().Connect(t.Context(), false); err == nil || !strings.Contains(err.Error(), "id_ed25519-cert.pub") {
		t.Errorf("without a key that counts: %v, want it to name the certificate", err)
	}
}
