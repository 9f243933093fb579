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

// noAgent is the advice if there is no agent.
const noAgent = "for sites behind ssh: keys in files also work; " +
	"one with a passphrase needs `corral site login SITE` each time corrald starts, or an agent at that time"

// sshAgent checks the agent that corrald uses for keys: the one that it was started with, or would be started with
// now. corrald cannot use an agent that was started later, even if ssh itself can.
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
		f.Found = "corrald was started " + before + ", the present one is " + here
		f.Advice = fmt.Sprintf("to use the present one: `kill %d`, and once it has ended `corral up`, "+
			"which continues its work", c.PID())
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
	_ = conn.Close() // nothing was sent
	f.Found = "answers on " + socket
	return f
}

// startedWith returns a variable from the environment with which a process of ours was started.
func startedWith(pid int, name string) (value string, known bool) {
	all, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for entry := range bytes.SplitSeq(all, []byte{0}) {
		if v, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			value = string(v)
		}
	}
	return value, err == nil
}

// home returns the home directory of corrald's user, which contains the ssh files.
func home(c Corrald) string {
	if owner := stateDir(c.Layout).owner(); owner != "" {
		if u, err := user.Lookup(owner); err == nil {
			return u.HomeDir
		}
	}
	home, _ := os.UserHomeDir() // without one there are no ssh files
	return home
}

// knownHosts checks the file with the keys of ssh hosts below the user's home directory.
func knownHosts(home string) Finding {
	f := Finding{Check: "ssh known hosts", OK: true}
	file := filepath.Join(home, ".ssh", "known_hosts")
	opened, err := input.Open(file)
	if err == nil {
		_ = opened.Close() // only readability was checked
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Found = "no " + file
		f.Advice = "the first contact with a site needs `corral site create --accept-host-key`, or an earlier " +
			"login with ssh"
	case err != nil:
		f.OK, f.Found = false, err.Error()
		f.Advice = "make it a readable file: no site behind ssh can be reached without it"
	default:
		f.Found = file
	}
	return f
}

// gssapi tells users of sites with Kerberos that GSSAPI is not supported, before they look for it.
func gssapi() Finding {
	return Finding{
		Check: "ssh by GSSAPI", OK: true, Found: "not supported",
		Advice: "for sites that accept only Kerberos tickets: use a key or a certificate, " +
			"or `corral site login SITE` if it asks for a password",
	}
}
