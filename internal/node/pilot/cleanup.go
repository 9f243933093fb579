package pilot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// jobsDir is the folder below a site's root for the jobs' directories, each named by the job's tag.
const jobsDir = "jobs"

// mark is the file in a root that names the owner, and lists the directories that were created for it. It is removed
// last, together with the root.
const mark = ".corral-site"

// Cleanup removes everything below the site's root except the root's mark and the job's own directory, root/jobs/TAG:
// corrald removes these two after it has read the report. It never leaves the root, not even through links. If some
// items cannot be removed, the job fails, and the report's log lists each of them with the reason.
func Cleanup(ctx context.Context, lg *slog.Logger, dir string) (jobfiles.Report, error) {
	return perform(dir, func(o jobfiles.Order) jobfiles.Report {
		if o.Cleanup == nil {
			return o.Refuse("cleanup")
		}
		return sweep(ctx, lg, o)
	})
}

// sweep carries out a cleanup order. It refuses a tag that is not a plain file name, because the sweeper would then
// keep the wrong directory.
func sweep(ctx context.Context, lg *slog.Logger, o jobfiles.Order) jobfiles.Report {
	if o.Tag != filepath.Base(o.Tag) || o.Tag == ".." || o.Tag == "." {
		return jobfiles.Report{Outcome: corral.OutcomeFailed, Reason: fmt.Sprintf("tag %q is not a file name", o.Tag)}
	}
	root, err := os.OpenRoot(o.Root)
	if err != nil {
		return jobfiles.Report{Outcome: corral.OutcomeFailed, Reason: "opening the root: " + err.Error()}
	}
	defer root.Close()
	s := sweeper{root: root, keep: path.Join(jobsDir, o.Tag)}
	s.empty(ctx, ".")
	for _, line := range s.left {
		lg.Warn("left behind", "what", line)
	}
	r := jobfiles.Report{Outcome: corral.OutcomeDone, Log: s.left}
	if len(s.left) > 0 {
		r.Outcome, r.Transient = corral.OutcomeFailed, s.busy
		r.Reason = fmt.Sprintf("%d items below %s could not be removed, the first: %s", len(s.left), o.Root, s.left[0])
	}
	return r
}

// A sweeper empties a directory. It uses os.Root, which does not follow links out of the directory, even ones that a
// task creates in the meantime.
type sweeper struct {
	root *os.Root
	keep string   // below root; slash-separated
	left []string // items that could not be removed, with the reason, one line each
	busy bool     // an item was in use; a later cleanup may remove it
}

// empty removes everything in dir except the mark, keep and the directories above keep.
func (s *sweeper) empty(ctx context.Context, dir string) {
	entries, err := fs.ReadDir(s.root.FS(), dir)
	if err != nil {
		s.note(dir, err)
		return
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case ctx.Err() != nil:
			s.note(name, ctx.Err())
		case name == s.keep, name == mark:
		case strings.HasPrefix(s.keep, name+"/") && e.IsDir():
			s.empty(ctx, name)
		default:
			s.remove(name)
		}
	}
}

// remove tries twice: tasks leave directories without write permission, whose contents only root can remove before
// their modes are changed.
func (s *sweeper) remove(name string) {
	if s.root.RemoveAll(name) == nil {
		return
	}
	s.unlockTree(name)
	if err := s.root.RemoveAll(name); err != nil {
		s.note(name, err)
	}
}

// unlockTree adds write permission to the directories at and below name. Errors are ignored here, because the removal
// reports them with their reason.
func (s *sweeper) unlockTree(name string) {
	info, err := s.root.Lstat(name)
	if err != nil || !info.IsDir() {
		return
	}
	_ = s.root.Chmod(name, 0o700)
	entries, err := fs.ReadDir(s.root.FS(), name)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			s.unlockTree(path.Join(name, e.Name()))
		}
	}
}

// note records an item that remains. It sets busy if a later cleanup may succeed: the item is mounted or open, a
// process was still writing there, or the time limit was reached.
func (s *sweeper) note(name string, err error) {
	s.left = append(s.left, name+": "+err.Error())
	s.busy = s.busy || errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ENOTEMPTY) ||
		errors.Is(err, context.Canceled)
}
