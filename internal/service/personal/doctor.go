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

// A Finding is what one check of the set-up found.
type Finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"` // what to do: one has to if not OK, and else may
}

// Limits below which things go wrong in ways that are hard to read.
const (
	leastFreeMiB = 512
	leastFiles   = 1024
)

// Examine checks what a personal corrald needs.
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

// programs checks that corrald and the pilot are where they are looked for.
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
	f.Found = "all there"
	if len(missing) > 0 {
		f.OK, f.Found = false, "missing: "+strings.Join(missing, ", ")
		f.Advice = "install coreutils and util-linux"
	}
	return f
}

// writable checks the directory, or the nearest one above it that exists, and its free space.
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
		f.Found, f.Advice = at+" "+why, "make it a directory of yours, or let the XDG variables name others"
		return f
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(at, &fs); err != nil {
		f.Found, f.Advice = at+": "+err.Error(), "look at the file system"
		return f
	}
	free := int64(fs.Bavail) * fs.Bsize >> 20
	f.OK, f.Found = free >= leastFreeMiB, fmt.Sprintf("%s, %d MiB free", dir, free)
	if !f.OK {
		f.Advice = fmt.Sprintf("make room: less than %d MiB are free", leastFreeMiB)
	}
	return f
}

// whyNotWritable says why no file can be made in dir, or nothing.
func whyNotWritable(dir string) string {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return "is not a directory"
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return "is not writable: " + err.Error()
	}
	return ""
}

// database reports what the last check of corrald's database found: corrald makes one at each start, and each backup
// makes one.
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
		f.Advice = fmt.Sprintf("put it back, or a backup with %s; to begin with nothing, remove %s", restore,
			dbcheck.File(l.Database()))
	case !checked:
		f.OK, f.Found = true, "not checked yet: corrald does so when it starts"
	case !r.Whole():
		f.Found = fmt.Sprintf("%s is damaged, as a check at %s found: %s", l.Database(), when, r.Damage)
		f.Advice = "stop corrald, and put the last good backup back with " + restore
	default:
		f.OK, f.Found = true, "whole at "+when
	}
	return f
}

// openFiles checks the limit of open files, of which each connection of a worker takes one.
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

// sockets checks that nobody else can listen where corrald does.
func sockets(c Corrald) Finding {
	f := Finding{Check: "socket directory"}
	here, bad, err := c.locate()
	switch {
	case err != nil:
		f.Found = err.Error()
		f.Advice = "see who owns " + c.Layout.State + ": it must be a user that exists, and you unless you are root"
		return f
	case bad.found != "":
		f.Found, f.Advice = bad.found, bad.advice
		return f
	}
	f.OK, f.Found = true, filepath.Dir(here.Layout.Socket)
	return f
}

// examineCorrald checks that what runs answers, and that nothing is left of one that died.
func examineCorrald(ctx context.Context, c Corrald) Finding {
	f := Finding{Check: "corrald", OK: true}
	here := c.Layout
	c, err := c.Located()
	if err != nil {
		f.Found = "not asked: its socket may be somebody else's"
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
		f.OK, f.Found = false, fmt.Sprintf("process %d runs, but %s", w.PID, w.gone())
		f.Advice = w.begin()
	case silent != 0:
		f.OK, f.Found, f.Advice = false, fmt.Sprintf("process %d runs but does not answer", silent), patiently(silent)
	case c.PID() != 0:
		f.OK, f.Found = false, fmt.Sprintf("process %d has left its pid file but does not answer", c.PID())
		f.Advice = "it was killed: `corral up` starts it again and takes up what it left; its log is " + c.Layout.Log()
	default:
		f.Found = "not running; `corral up` starts it"
	}
	return f
}

// compareVersion finds out whether the corrald that answers is of this program's version.
func compareVersion(ctx context.Context, c Corrald, f *Finding) {
	cl, err := c.Client()
	if err != nil {
		return
	}
	defer cl.Close()
	h, err := cl.Health(ctx)
	if err == nil && h.Version != version.String() {
		f.OK, f.Found = false, f.Found+", but is version "+h.Version+" where this is "+version.String()
		f.Advice = "end it with `corral down`, or use the corral that came with it"
	}
}
