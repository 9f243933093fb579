package personal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral/internal/kit/input"
)

// noAgent is what to do without an agent.
const noAgent = "for sites behind ssh: keys in files do as well; " +
	"one with a passphrase wants `corral site login SITE` each time corrald starts, or an agent at that time"

// sshAgent looks for the agent that corrald asks for keys: the one that it was started with, or would be now. An agent
// that was started later is not corrald's, however well ssh itself works with it.
func sshAgent(ctx context.Context, c Corrald) Finding {
	f := Finding{Check: "ssh agent", OK: true}
	if owner := stateDir(c.Layout).owner(); owner != "" {
		f.Found, f.Advice = "none: corrald runs as "+owner, noAgent
		return f
	}
	here := os.Getenv("SSH_AUTH_SOCK")
	socket, running := here, false
	if c.Answers(ctx) {
		if value, known := startedWith(c.PID(), "SSH_AUTH_SOCK"); known {
			socket, running = value, true
		}
	}
	switch {
	case running && here != "" && here != socket:
		before := "with " + socket
		if socket == "" {
			before = "without one"
		}
		f.Found = "corrald was started " + before + ", here is " + here
		f.Advice = fmt.Sprintf("to use the one that is here: `kill %d`, and once it has ended `corral up`, "+
			"which takes up what it left", c.PID())
		return f
	case socket == "":
		f.Found, f.Advice = "none", noAgent
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
	f.Found = "answers on " + socket
	return f
}

// startedWith returns a variable of the environment in which a process of ours was started.
func startedWith(pid int, name string) (value string, known bool) {
	all, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for entry := range bytes.SplitSeq(all, []byte{0}) {
		if v, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			value = string(v)
		}
	}
	return value, err == nil
}

// home is the home directory of the user as whom corrald runs, in which its ssh files are.
func home(c Corrald) string {
	if owner := stateDir(c.Layout).owner(); owner != "" {
		if u, err := user.Lookup(owner); err == nil {
			return u.HomeDir
		}
	}
	home, _ := os.UserHomeDir() // without one there are no files of ssh
	return home
}

// knownHosts checks the file in which the keys of ssh hosts are looked up, below the user's home directory.
func knownHosts(home string) Finding {
	f := Finding{Check: "ssh known hosts", OK: true}
	file := filepath.Join(home, ".ssh", "known_hosts")
	opened, err := input.Open(file)
	if err == nil {
		_ = opened.Close() // that it can be read was all
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Found = "no " + file
		f.Advice = "a site's first contact wants `corral site create --accept-host-key`, or a login with ssh before"
	case err != nil:
		f.OK, f.Found = false, err.Error()
		f.Advice = "make it a file that you can read: no site behind ssh is reached without it"
	default:
		f.Found = file
	}
	return f
}

// gssapi tells users of sites with Kerberos that there is no GSSAPI, before they look for it.
func gssapi() Finding {
	return Finding{
		Check: "ssh by GSSAPI", OK: true, Found: "not supported",
		Advice: "where a site lets in by Kerberos tickets only: use a key or a certificate, " +
			"or `corral site login SITE` if it asks for a password",
	}
}
