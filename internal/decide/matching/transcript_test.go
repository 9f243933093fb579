package matching_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// A transcript is a list of commands, each followed by its answer. `go test -run Transcripts -rewrite` rewrites the
// answers; commit them only if you understand why they changed.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no transcripts: ", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c := newCluster()
			datadriven.RunTest(t, file, c.command)
		})
	}
}

// command does one of:
//
//	slot ID [cpus=1] [memory=1000] [lasts=1h] [speed=1]   a worker comes, with 2 GPUs and 1000 MiB of disk
//	push NAME [cpus=1] [memory=100] [gpus=0] [disk=0] [estimate=1m] [priority=0] [count=1]
//	match                                       all slots
//	release NAME [took=TIME]                    a job ends; with took, its run learns from it
//	leave ID                                    a worker leaves; its jobs are queued again
//	overdue ID                                  recalled jobs are queued again
//
// Each accepts [now=TIME since the start]. The answer lists the jobs that are queued, running and waiting after the
// command.
func (c *cluster) command(t *testing.T, d *datadriven.TestData) string {
	cpus, memory, gpus, disk, estimate, priority, count := 1, 100, 0, 0, "1m", 0.0, 1
	lasts, now, took, speed := "1h", c.now.Sub(start).String(), "", 1.0
	if d.Cmd == "slot" {
		memory = 1000
	}
	for key, to := range map[string]any{
		"cpus": &cpus, "memory": &memory, "gpus": &gpus, "disk": &disk, "estimate": &estimate, "priority": &priority, "count": &count,
		"lasts": &lasts, "now": &now, "took": &took, "speed": &speed,
	} {
		d.MaybeScanArgs(t, key, to)
	}
	c.now = start.Add(duration(t, now))
	name := ""
	if len(d.CmdArgs) > 0 {
		name = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "slot":
		c.openAt(name, cpus, memory, duration(t, lasts), corral.Speed(speed))
		return "ok"
	case "push":
		for i := range count {
			full := name
			if count > 1 {
				full = fmt.Sprint(name, i+1)
			}
			c.push(full, 0, priority, matching.Resources{
				Resources: corral.Resources{CPUs: cpus, MemoryMiB: memory, GPUs: gpus, DiskMiB: disk},
				Time:      duration(t, estimate),
			})
		}
		return c.queue()
	case "match":
		c.match()
	case "release":
		c.end(t, name, took)
	case "leave":
		c.leave(c.slot(t, name))
	case "overdue":
		s := c.slot(t, name)
		for _, j := range s.Overdue(c.now) {
			c.free(s, j)
			c.restore(j)
		}
	default:
		d.Fatalf(t, "what is %s?", d.Cmd)
	}
	return c.state()
}

func (c *cluster) end(t *testing.T, name, took string) {
	for s, jobs := range c.held {
		if i := slices.IndexFunc(jobs, func(j *job) bool { return j.name == name }); i >= 0 {
			j := jobs[i]
			c.free(s, j)
			if took != "" {
				j.Run.Observe(duration(t, took), j.Needs.Time, s.Speed)
			}
			return
		}
	}
	t.Fatalf("no slot has a job %s", name)
}

func (c *cluster) leave(s *matching.Slot[*job]) {
	c.Close(s)
	for _, j := range c.held[s] {
		c.restore(j)
	}
	delete(c.held, s)
	c.slots = slices.DeleteFunc(c.slots, func(o *matching.Slot[*job]) bool { return o == s })
}

func (c *cluster) slot(t *testing.T, id string) *matching.Slot[*job] {
	i := slices.IndexFunc(c.slots, func(s *matching.Slot[*job]) bool { return s.ID == id })
	if i < 0 {
		t.Fatalf("there is no slot %s", id)
	}
	return c.slots[i]
}

// queue lists the queued jobs in the order in which they were pushed.
func (c *cluster) queue() string {
	slices.SortFunc(c.queued, func(a, b *job) int { return a.seq - b.seq })
	return fmt.Sprintf("queued: %s\n", names(c.queued))
}

// state returns a line for the queue and a line for each slot.
func (c *cluster) state() string {
	var text strings.Builder
	fmt.Fprint(&text, c.queue())
	for _, s := range c.slots {
		fmt.Fprintf(&text, "%s: runs %s", s.ID, names(s.Running()))
		if waiting := c.waiting(s); len(waiting) > 0 {
			fmt.Fprintf(&text, "; waits %s", names(waiting))
		}
		fmt.Fprintln(&text)
	}
	return text.String()
}

// names lists jobs; if there are many, only the first and the last.
func names(jobs []*job) string {
	const most = 6
	var all []string
	for _, j := range jobs {
		all = append(all, j.name)
	}
	switch {
	case len(all) == 0:
		return "-"
	case len(all) > most:
		return fmt.Sprintf("%s … %s (%d)", all[0], all[len(all)-1], len(all))
	}
	return strings.Join(all, " ")
}

func duration(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
