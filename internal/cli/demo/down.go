package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/service/personal"
)

// down removes everything at the site, shows the events of the timeline, and ends corrald. It requests the events
// before corrald ends: the last event is the end of the cleanup job, whose time is recorded only by corrald.
func (d *demo) down(ctx context.Context) error {
	d.out.doing("draining the pilots, and the cleanup job of site " + d.site.Name)
	done, err := personal.TakeDown(ctx, d.cl, personal.Down{})
	if err != nil {
		return err
	}
	if len(done.Left) > 0 {
		return corral.Errorf(corral.Failed, "left behind: %v", done.Left)
	}
	events, err := d.cl.SiteTimeline(ctx, strconv.FormatInt(int64(d.site.ID), 10))
	if err != nil {
		return err
	}
	d.out.timeline(events)
	d.cl.Close()
	return d.corrald.Stop(ctx)
}

// nothingLeft searches for processes and files that should be gone, then removes the directory. It examines the machine
// instead of asking corrald, which has ended.
func (d *demo) nothingLeft(context.Context) error {
	if left := processesBelow(d.dir); len(left) > 0 {
		return corral.Errorf(corral.Failed, "processes of the demo are still there: %v", left)
	}
	if _, err := os.Lstat(d.site.Root); err == nil {
		return corral.Errorf(corral.Failed, "the site's directory %s is still there", d.site.Root)
	}
	if d.cfg.Keep {
		d.out.say("left", "no process, nothing at the site; kept is %s", d.run.Dir)
		return d.corrald.Erase(false)
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return fmt.Errorf("removing %s: %w", d.dir, err)
	}
	d.out.say("left", "no process, nothing at the site, and that folder is removed")
	return nil
}

// processesBelow returns the processes whose program or working directory is below dir, or whose command line or
// environment contains dir.
func processesBelow(dir string) []int {
	var found []int
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil || pid == os.Getpid() {
			continue
		}
		var all []byte // a process that cannot be read has ended or belongs to another user
		for _, file := range []string{"cmdline", "environ"} {
			b, _ := os.ReadFile(filepath.Join(proc, file))
			all = append(all, b...)
		}
		for _, link := range []string{"exe", "cwd"} {
			to, _ := os.Readlink(filepath.Join(proc, link))
			all = append(all, to...)
		}
		if bytes.Contains(all, []byte(dir)) {
			found = append(found, pid)
		}
	}
	return found
}
