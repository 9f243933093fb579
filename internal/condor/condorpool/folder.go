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

// A folder holds a cluster's files: its pool, a link to the release that the pool runs and, if another party runs the
// pool, the token for that pool. It exists as long as the cluster is not DELETED.
type folder struct {
	path  string
	runAs string // see Config.RunAs
}

// in returns the path of a name in the folder, or of the folder itself for "".
func (f folder) in(name string) string { return filepath.Join(f.path, name) }

// Names in a cluster's folder.
const (
	poolDir     = "pool"      // HTCondor's own folder, or the configuration of commands for a remote pool
	queueDir    = "queue"     // the job queue's folder
	streamDir   = "stream"    // the worker jobs' folder
	releaseLink = "release"   // same path after an upgrade: shells and queues continue with the new release
	tokenFile   = "token"     // token for a remote pool
	liveFile    = "live.conf" // part of the pool's configuration: the attempts whose slots the negotiator may match
)

// make creates the folder. Only its parent is accessible to everyone.
func (f folder) make() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return err
	}
	return f.mkdir("")
}

// mkdir creates a subfolder that only the pool's owner can enter, unless it exists.
func (f folder) mkdir(name string) error {
	owner, err := condor.AccountFor(f.runAs)
	if err == nil {
		err = owner.MakeFolder(f.in(name))
	}
	return err
}

// write atomically replaces a file in the folder: readers see either the old or the new text.
func (f folder) write(name, text string) error {
	owner, err := condor.AccountFor(f.runAs)
	if err == nil {
		err = owner.Replace(f.in(name), text)
	}
	return err
}

// link creates the folder and, atomically, the link in it to the release: a command that starts at the same time runs
// either the old or the new release.
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

// token returns the token that was provided to attach to a remote pool.
func (f folder) token() (string, error) {
	text, err := os.ReadFile(f.in(tokenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("the pool has no token: `corral cluster create … --token FILE`")
	}
	return strings.TrimSpace(string(text)), err
}

// releases manages the HTCondor releases for pools on this machine.
type releases struct {
	lg     *slog.Logger
	source Releases
	dir    string // the parent of the clusters' folders

	// mu is held from finding a release until a cluster's link points to it, and while other releases are removed:
	// otherwise a release could be removed just before it is used.
	mu sync.Mutex
}

// link finds the HTCondor release that ref names and points the link in a cluster's folder to that release. Without a
// ref it chooses the newest release. A cluster has a ref from its first start on, so a restart does not upgrade the
// cluster.
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

// prune removes the releases that no cluster uses any more, because each upgrade leaves such a release behind. Stopped
// clusters count as users, because they may be started again.
func (r *releases) prune() {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The links on the disk show which releases are used, including those of clusters that this corrald has not
	// examined yet.
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
