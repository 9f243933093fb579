package personal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/kit/dbcheck"
	"github.com/corral-pilot/corral/internal/kit/version"
	"github.com/corral-pilot/corral/internal/kit/xdg"
)

// A Finding is the result of one check of the setup.
type Finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"` // what to do: necessary if not OK, otherwise optional
}

// Limits below which failures are hard to interpret.
const (
	leastFreeMiB = 512
	leastFiles   = 1024
)

// Examine checks the requirements of a personal corrald.
func Examine(ctx context.Context, c Corrald) []Finding {
	return []Finding{
		programs(),
		tools(),
		writable("state directory", c.Layout.State),
		writable("cache directory", c.Layout.Cache),
		writable("data directory", c.Layout.Data),
		sockets(c),
		openFiles(),
		examineCorrald(ctx, c),
		database(c.Layout),
		examineHTCondor(ctx, c),
		sshAgent(ctx, c),
		knownHosts(home(c)),
		gssapi(),
	}
}

// programs checks that corrald and the pilot are in their expected places.
func programs() Finding {
	f := Finding{Check: "programs"}
	corrald, err := FindCorrald()
	if err != nil {
		f.Found, f.Advice = err.Error(), "run `make build` and use bin/corral, or put corrald on the PATH"
		return f
	}
	pilot := filepath.Join(filepath.Dir(corrald), "pilot")
	if err := unix.Access(pilot, unix.X_OK); err != nil {
		f.Found, f.Advice = pilot+": "+err.Error(), "run `make build`: the pilot binary belongs beside corrald"
		return f
	}
	f.OK, f.Found = true, corrald+", pilot beside it"
	return f
}

// tools checks the few programs that a site on this machine needs.
func tools() Finding {
	f := Finding{Check: "tools of this machine", OK: true}
	var missing []string
	for _, tool := range []string{"sh", "setsid", "uname", "mkdir", "mv", "rm"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, tool)
		}
	}
	f.Found = "all present"
	if len(missing) > 0 {
		f.OK, f.Found = false, "missing: "+strings.Join(missing, ", ")
		f.Advice = "install coreutils and util-linux"
	}
	return f
}

// writable checks the directory, or its nearest existing parent, and its free space.
func writable(check, dir string) Finding {
	f := Finding{Check: check}
	at := dir
	for {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	if why := whyNotWritable(at); why != "" {
		f.Found, f.Advice = at+" "+why, "make it a directory that you own, or set the XDG variables to others"
		return f
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(at, &fs); err != nil {
		f.Found, f.Advice = at+": "+err.Error(), "check the file system"
		return f
	}
	free := int64(fs.Bavail) * fs.Bsize >> 20
	f.OK, f.Found = free >= leastFreeMiB, fmt.Sprintf("%s, %d MiB free", dir, free)
	if !f.OK {
		f.Advice = fmt.Sprintf("make room: less than %d MiB are free", leastFreeMiB)
	}
	return f
}

// whyNotWritable returns the reason why no file can be created in dir, or "".
func whyNotWritable(dir string) string {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return "is not a directory"
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return "is not writable: " + err.Error()
	}
	return ""
}

// database reports the result of the last check of corrald's database, made by a start or a backup.
func database(l xdg.Layout) Finding {
	f := Finding{Check: "database"}
	r, checked, err := dbcheck.Read(l.Database())
	if err != nil {
		f.Found = err.Error()
		f.Advice = "start corrald again: it checks the database"
		return f
	}
	_, missing := os.Stat(l.Database())
	restore := fmt.Sprintf("`corral admin restore --force --state %s FILE`", l.State)
	when := fmt.Sprintf("%s (%s)", r.At.Local().Format(time.DateTime), r.By)
	switch {
	case checked && errors.Is(missing, fs.ErrNotExist):
		f.Found = fmt.Sprintf("%s is missing; it was there at %s", l.Database(), when)
		f.Advice = fmt.Sprintf("put it back, or restore a backup with %s; to start without data, remove %s", restore,
			dbcheck.File(l.Database()))
	case !checked:
		f.OK, f.Found = true, "not checked yet: corrald does so when it starts"
	case !r.Whole():
		f.Found = fmt.Sprintf("%s is damaged, as a check at %s found: %s", l.Database(), when, r.Damage)
		f.Advice = "stop corrald, and restore the last good backup with " + restore
	default:
		f.OK, f.Found = true, "whole at "+when
	}
	return f
}

// openFiles checks the limit on open files, because each worker connection uses one.
func openFiles() Finding {
	f := Finding{Check: "open files"}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		f.Found = err.Error()
		return f
	}
	f.OK, f.Found = limit.Max >= leastFiles, fmt.Sprintf("at most %d", limit.Max)
	if !f.OK {
		f.Advice = fmt.Sprintf("raise the limit (ulimit -n) to %d or more", leastFiles)
	}
	return f
}

// sockets checks that no other user can listen on corrald's sockets.
func sockets(c Corrald) Finding {
	f := Finding{Check: "socket directory"}
	here, bad, err := c.locate()
	switch {
	case err != nil:
		f.Found = err.Error()
		f.Advice = "check the owner of " + c.Layout.State + ": it must be an existing user, and you unless you are root"
		return f
	case bad.found != "":
		f.Found, f.Advice = bad.found, bad.advice
		return f
	}
	f.OK, f.Found = true, filepath.Dir(here.Layout.Socket)
	return f
}

// examineCorrald checks that a running corrald answers, and that a dead one has left nothing behind.
func examineCorrald(ctx context.Context, c Corrald) Finding {
	f := Finding{Check: "corrald", OK: true}
	here := c.Layout
	c, err := c.Located()
	if err != nil {
		f.Found = "not checked: its socket may belong to another user"
		return f
	}
	answers, silent := c.awaitAnswer(ctx)
	w, lost := stateDir(c.Layout).lost()
	switch {
	case answers:
		f.Found = fmt.Sprintf("process %d answers on %s", c.PID(), c.Layout.Socket)
		if why := c.Elsewhere(here); why != "" {
			f.Found += ": " + why
		}
		compareVersion(ctx, c, &f)
	case lost:
		f.OK, f.Found = false, fmt.Sprintf("process %d is running, but %s", w.PID, w.gone())
		f.Advice = w.begin()
	case silent != 0:
		f.OK, f.Found = false, fmt.Sprintf("process %d is running but does not answer", silent)
		f.Advice = patiently(silent)
	case c.PID() != 0:
		f.OK, f.Found = false, fmt.Sprintf("process %d has left its pid file but does not answer", c.PID())
		f.Advice = "it was killed: `corral up` restarts it and continues its work; its log is " + c.Layout.Log()
	default:
		f.Found = "not running; `corral up` starts it"
	}
	return f
}

// compareVersion checks that the running corrald has the same version as this program.
func compareVersion(ctx context.Context, c Corrald, f *Finding) {
	cl, err := c.Client()
	if err != nil {
		return
	}
	defer cl.Close()
	h, err := cl.Health(ctx)
	if err == nil && h.Version != version.String() {
		f.OK, f.Found = false, f.Found+", but its version is "+h.Version+" and this program's is "+version.String()
		f.Advice = "stop it with `corral down`, or use the corral program of that version"
	}
}
