package personal

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// sshAgent looks for the agent that a corrald started now would ask for keys.
func sshAgent(ctx context.Context) Finding {
	f := Finding{Check: "ssh agent", OK: true}
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		f.Found = "none"
		f.Advice = "for sites behind ssh: keys in files do as well; one with a passphrase wants `corral site login SITE` each time corrald starts, or an agent at that time"
		return f
	}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		f.Found = "does not answer: " + err.Error()
		f.Advice = "start one with `eval \"$(ssh-agent)\"`, or unset SSH_AUTH_SOCK, before `corral up`"
		return f
	}
	_ = conn.Close() // nothing was said
	f.Found = "answers on " + socket + "; corrald uses the one that it was started with"
	return f
}

// knownHosts checks the file in which the keys of ssh hosts are looked up, below the user's home directory.
func knownHosts(home string) Finding {
	f := Finding{Check: "ssh known hosts", OK: true}
	file := filepath.Join(home, ".ssh", "known_hosts")
	_, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Found, f.Advice = "no "+file, "a site's first contact wants `corral site create --accept-host-key`, or a login with ssh before"
	case err != nil:
		f.OK, f.Found, f.Advice = false, err.Error(), "make it a file that you can read: no site behind ssh is reached without it"
	default:
		f.Found = file
	}
	return f
}

// gssapi says what a user of a site with Kerberos would look for in vain.
func gssapi() Finding {
	return Finding{
		Check: "ssh by GSSAPI", OK: true, Found: "not supported",
		Advice: "where a site lets in by Kerberos tickets only: use a key or a certificate, or `corral site login SITE` if it asks for a password",
	}
}
