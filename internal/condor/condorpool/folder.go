package condorpool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/corral-pilot/corral/condor"
)

// A folder is what a cluster has on disk: its pool, a link to the release that the pool runs, and, of a pool that
// somebody else runs, the token that was given for it. It exists as long as the cluster is not DELETED.
type folder struct {
	path  string
	runAs string // see Config.RunAs
}

// in returns the path of something in the folder; of the folder itself for "".
func (f folder) in(name string) string { return filepath.Join(f.path, name) }

// Names in a cluster's folder.
const (
	poolDir     = "pool"      // HTCondor's own, or the configuration of commands on a pool elsewhere
	queueDir    = "queue"     // the job queue's
	streamDir   = "stream"    // that of worker jobs
	releaseLink = "release"   // stays where it is when the pool is upgraded: shells and queues go on with the new one
	tokenFile   = "token"     // that was given for a pool elsewhere
	liveFile    = "live.conf" // a part of the pool's configuration: which attempts' slots the negotiator may match
)

// make makes the folder. Only its parent may be entered by everybody.
func (f folder) make() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return err
	}
	return f.mkdir("")
}

// mkdir makes a folder in it that only the pool's owner enters, if it is not there.
func (f folder) mkdir(name string) error {
	owner, err := condor.AccountFor(f.runAs)
	if err == nil {
		err = owner.MakeFolder(f.in(name))
	}
	return err
}

// write replaces a file in the folder, at once: whatever reads it finds the old text or the new.
func (f folder) write(name, text string) error {
	owner, err := condor.AccountFor(f.runAs)
	if err == nil {
		err = owner.Replace(f.in(name), text)
	}
	return err
}

// link makes the folder and, at once, the link to the release in it: a command that starts meanwhile runs the old
// release or the new one.
func (f folder) link(release string) error {
	if err := f.make(); err != nil {
		return err
	}
	aside := f.in(releaseLink + ".new")
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(release, aside); err != nil {
		return err
	}
	return os.Rename(aside, f.in(releaseLink))
}

// token is what was given to attach to a pool that somebody else runs.
func (f folder) token() (string, error) {
	text, err := os.ReadFile(f.in(tokenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("no token for the pool was given: `corral cluster create … --token FILE`")
	}
	return strings.TrimSpace(string(text)), err
}

// releases are the HTCondors that pools of this machine are made of.
type releases struct {
	lg     *slog.Logger
	source Releases
	dir    string // of the clusters' folders

	// Held from when a release is found until a cluster's link leads to it, and while others are removed: else one
	// could be removed that is about to be used.
	mu sync.Mutex
}

// link finds the HTCondor that ref names, and has the link in a cluster's folder lead there. Without a ref it is the
// newest: a cluster has a ref from its first start on, so that it is not upgraded because it is started again.
func (r *releases) link(ctx context.Context, ref string, f folder) (found, version string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ref == "" {
		if ref, err = r.source.Newest(ctx); err != nil {
			return "", "", err
		}
	}
	dir, version, err := r.source.Release(ctx, ref)
	if err == nil {
		if err = f.link(dir); err != nil {
			err = fmt.Errorf("preparing the cluster's folder: %w", err)
		}
	}
	return ref, version, err
}

// prune removes the releases that no cluster is made of any more: each upgrade leaves one. Clusters that are stopped
// count too, since they may be started again.
func (r *releases) prune() {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The links on the disk say what is used, also by clusters that this corrald has not looked at yet.
	links, err := filepath.Glob(filepath.Join(r.dir, "*", releaseLink))
	var used []string
	for _, name := range links {
		dir, errRead := os.Readlink(name)
		used, err = append(used, dir), errors.Join(err, errRead)
	}
	if err == nil {
		err = r.source.Prune(used)
	}
	if err != nil {
		r.lg.Warn("unused releases are left", "error", err)
	}
}
