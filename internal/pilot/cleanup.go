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
	"github.com/corral-pilot/corral/internal/order"
)

// jobsDir is the folder below a site's root that holds the directories of the jobs, each named by its
// tag.
const jobsDir = "jobs"

// Cleanup is the cleanup job: it removes everything below the site's root but its own directory,
// root/jobs/TAG, which corrald removes after it has read the report. It never leaves the root, through
// links or otherwise. What cannot be removed is listed in the report's log, and then the job failed.
func Cleanup(ctx context.Context, lg *slog.Logger, dir string) (order.Report, error) {
	return perform(dir, func(o order.Order) order.Report {
		if o.Cleanup == nil {
			return wrongOrder(o.Tag, "cleanup")
		}
		return sweep(ctx, lg, o)
	})
}

func sweep(ctx context.Context, lg *slog.Logger, o order.Order) order.Report {
	if o.Tag != filepath.Base(o.Tag) || o.Tag == ".." || o.Tag == "." {
		return order.Report{Outcome: corral.OutcomeFailed, Reason: fmt.Sprintf("tag %q is not a file name", o.Tag)}
	}
	root, err := os.OpenRoot(o.Root)
	if err != nil {
		return order.Report{Outcome: corral.OutcomeFailed, Reason: "opening the root: " + err.Error()}
	}
	defer root.Close()
	s := sweeper{root: root, keep: path.Join(jobsDir, o.Tag)}
	s.empty(ctx, ".")
	for _, line := range s.left {
		lg.Warn("left behind", "what", line)
	}
	r := order.Report{Outcome: corral.OutcomeDone, Log: s.left}
	if len(s.left) > 0 {
		r.Outcome, r.Transient = corral.OutcomeFailed, s.busy
		r.Reason = fmt.Sprintf("%d things below %s could not be removed, the first: %s", len(s.left), o.Root, s.left[0])
	}
	return r
}

// A sweeper empties a directory.
type sweeper struct {
	root *os.Root
	keep string   // below root; slash-separated
	left []string // what could not be removed, and why
	busy bool     // something was in use, and may be removed later
}

// empty removes what is in dir but keep and the directories above it.
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
		case name == s.keep:
		case strings.HasPrefix(s.keep, name+"/") && e.IsDir():
			s.empty(ctx, name)
		default:
			s.remove(name)
		}
	}
}

// remove tries twice: tasks leave directories without write permission, which only root removes at
// once.
func (s *sweeper) remove(name string) {
	if s.root.RemoveAll(name) == nil {
		return
	}
	s.unlockTree(name)
	if err := s.root.RemoveAll(name); err != nil {
		s.note(name, err)
	}
}

// unlockTree makes the directories at and below name ours to change. What fails here fails again, with
// its reason, when it is removed.
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

// removeTree removes dir and all below it, whatever modes tasks gave their directories.
func removeTree(dir string) error {
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	s := sweeper{root: root}
	if s.remove(filepath.Base(dir)); len(s.left) > 0 {
		return errors.New(s.left[0])
	}
	return nil
}

func (s *sweeper) note(name string, err error) {
	s.left = append(s.left, name+": "+err.Error())
	s.busy = s.busy || errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, context.Canceled)
}
