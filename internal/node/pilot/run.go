package pilot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/node/process"
	"github.com/corral-pilot/corral/staging"
)

// scratchDir in the job's directory holds the workers' own files. It is not in $TMPDIR, so that the cleanup job finds
// it if this process was killed.
const scratchDir = "scratch"

// Run is the pilot job. It returns when the pilot has left: all processes that it started, and their descendants, have
// ended, its scratch directory has been removed, and the report has been written. The end of ctx means that the site
// reclaims the node; ctx's cause becomes the report's reason.
//
// If another process has taken the job's lease, a supervisor does not change any of the holder's files: its outcome is
// duplicate, and it writes its report to a folder duplicate-ID in the job's directory.
func Run(ctx context.Context, lg *slog.Logger, dir string) (jobfiles.Report, error) {
	started := time.Now()
	dir, err := filepath.Abs(dir)
	if err = errors.Join(err, process.Hide()); err != nil {
		return jobfiles.Report{}, fmt.Errorf("prepare the pilot: %w", err)
	}
	o, err := jobfiles.Read(dir)
	if err != nil {
		return jobfiles.Report{}, err
	}
	me := newHolder()
	leased := takeLease(dir, me)
	var r jobfiles.Report
	switch {
	case o.Pilot == nil || o.Pilot.Hosts < 1 || o.Pilot.CPUs < 1 || o.Pilot.Walltime <= 0:
		r = o.Refuse("pilot with a host, a cpu and a walltime")
	case errors.Is(leased, errLeased):
		r = jobfiles.Report{Outcome: corral.OutcomeDuplicate, Reason: leased.Error()}
		dir = filepath.Join(dir, "duplicate-"+me.ID)
		err = os.Mkdir(dir, 0o700)
	case leased != nil:
		r = attempt.Unfit(me.Host, leased.Error())
	default:
		defer usePackage(lg, o.Root)()
		lg = lg.With("attempt", o.Tag)
		s := &supervisor{
			lg: lg, dir: dir, order: o, me: me, parent: os.Getppid(), log: logbook{lg: lg},
			group: process.NewGroup(), serves: map[*process.Child]*attempt.Worker{},
		}
		r = s.serve(ctx, started)
	}
	r.StartedAt, r.EndedAt = started.UTC(), time.Now().UTC()
	return r, errors.Join(err, jobfiles.WriteReport(dir, r))
}

// usePackage keeps the package that this program is part of from being pruned, until the returned function is called.
// It does nothing for a pilot that does not run from the site's package cache.
func usePackage(lg *slog.Logger, root string) (release func()) {
	self, err := os.Executable()
	dir := filepath.Dir(filepath.Dir(self)) // root/packages/HEX/bin/pilot
	if err != nil || filepath.Dir(filepath.Dir(dir)) != filepath.Clean(root) {
		return func() {}
	}
	return use(lg, dir)
}

// use keeps the package in dir from being pruned, until the returned function is called.
func use(lg *slog.Logger, dir string) (release func()) {
	release, err := staging.Use(dir)
	if err != nil { // harmless: the cache may exceed its limit for a while
		lg.Warn("cannot record the use of the package", "error", err)
		return func() {}
	}
	return release
}
