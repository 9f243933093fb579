package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/personal"
)

// down removes what is at the site, shows the nine events, and ends corrald.
func (d *Demo) down(ctx context.Context) error {
	d.step("cleaning up")
	done, err := personal.TakeDown(ctx, d.cl, false)
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
	d.timeline(events)
	d.cl.Close()
	return d.corrald.Stop(ctx)
}

// timeline draws the nine events of a provisioning request on one scale.
func (d *Demo) timeline(events []corral.TimelineEvent) {
	if len(events) == 0 {
		return
	}
	const width = 40
	first, last := events[0].At, events[0].At
	for _, e := range events {
		if e.At.After(last) {
			last = e.At
		}
	}
	total := max(last.Sub(first), time.Millisecond)
	for _, e := range events {
		since := e.At.Sub(first)
		mark := int(since * width / total)
		d.say("  %-17s %9s  %s", e.Name, since.Round(time.Millisecond), bar(mark, width))
	}
}

func bar(mark, width int) string {
	return string(bytes.Repeat([]byte("·"), mark)) + "●" + string(bytes.Repeat([]byte("·"), width-mark))
}

// nothingLeft looks for processes and files that should be gone, then removes the directory.
func (d *Demo) nothingLeft(context.Context) error {
	d.step("what is left")
	if left := processesBelow(d.dir); len(left) > 0 {
		return corral.Errorf(corral.Failed, "processes of the demo are still there: %v", left)
	}
	if _, err := os.Lstat(d.site.Root); err == nil {
		return corral.Errorf(corral.Failed, "the site's directory %s is still there", d.site.Root)
	}
	d.say("no process, nothing at the site")
	if d.cfg.Keep {
		d.say("kept: %s", d.run.Dir)
		return d.corrald.Erase(false)
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return fmt.Errorf("removing %s: %w", d.dir, err)
	}
	d.say("%s is removed", d.dir)
	return nil
}

// processesBelow returns the processes whose command line or environment names dir.
func processesBelow(dir string) []int {
	var found []int
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil || pid == os.Getpid() {
			continue
		}
		for _, file := range []string{"cmdline", "environ"} {
			b, err := os.ReadFile(filepath.Join(proc, file)) // gone, or another user's: not ours
			if err == nil && bytes.Contains(b, []byte(dir)) {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

// abandon takes down what a failed or interrupted demo started, and says where to look.
func (d *Demo) abandon(cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if d.corrald.Answers(ctx) {
		if d.cl == nil {
			d.cl, _ = api.New("unix:" + d.corrald.Layout.Socket)
		}
		if _, err := personal.TakeDown(ctx, d.cl, true); err != nil {
			d.say("taking it down failed too: %v", err)
		}
		if err := d.corrald.Stop(ctx); err != nil {
			d.say("%v", err)
		}
	}
	d.say("\nThe demo failed: %v\nIts files are below %s; corrald's log is %s", cause, d.dir, d.corrald.Layout.Log())
}
