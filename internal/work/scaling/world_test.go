package scaling

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// A world is a scaled cluster in which all requested workers arrive.
type world struct {
	scale corral.Scale
	now   time.Time
	last  corral.GlideinID
	View
}

func newWorld() *world {
	return &world{scale: scaled(), now: now, View: View{Longest: 50 * time.Minute}}
}

// look makes a decision. After that, requested workers are expected, with the disk of their site's workers, and
// withdrawn workers are not.
func (w *world) look() Decision {
	v := w.View
	v.Room = slices.Clone(w.Room)
	d := Decide(w.now, w.scale, v)
	for i := range w.Coming {
		if c := &w.Coming[i]; !slices.Contains(d.Spare, c.Own) {
			c.SpareAt = time.Time{}
		} else if c.SpareAt.IsZero() {
			c.SpareAt = w.now
		}
	}
	w.Coming = slices.DeleteFunc(w.Coming, func(c Coming) bool { return slices.Contains(d.Withdraw, c.Own) })
	w.Held -= len(d.Withdraw) * w.scale.CPUs
	for _, a := range d.Asks {
		w.last++
		s := &w.Sites[slices.IndexFunc(w.Sites, func(s Supplier) bool { return s.Name == a.Site })]
		s.Pilots--
		host, _ := s.room(w.scale.CPUs, a.Needs)
		host.MemoryMiB, host.GPUs = a.Needs.MemoryMiB, a.Needs.GPUs
		w.Coming = append(w.Coming, Coming{Room: Room{host, w.Longest}, Own: w.last})
		w.Held += w.scale.CPUs
	}
	return d
}

// come makes the expected workers present, and assigns jobs to them.
func (w *world) come() {
	for _, c := range w.Coming {
		w.Room = append(w.Room, c.Room)
	}
	w.Coming = nil
	for i := range w.Room {
		w.Room[i].fill(w.Waiting)
	}
}

// A transcript is a table of checks: the waiting jobs, the workers, and the decision. `go test -run Transcripts
// -rewrite` rewrites the answers; commit them only if you understand why they changed.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no transcripts: ", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			w := newWorld()
			datadriven.RunTest(t, file, w.command)
		})
	}
}

// command does one of:
//
//	scale [min=0] [max=8] [cpus=2]                               the terms; pilots are spare for a minute
//	site NAME [pilots=100] [cpus=N] [memory=N] [gpus=0] [disk=N] [closed=WHY]   a queue of a site with its largest host
//	worker [cpus=2] [memory=1000] [gpus=0] [disk=1000] [left=50m]   free resources of a present worker
//	queue JOBS [cpus=1] [memory=0] [gpus=0] [disk=0] [time=1m]   more jobs wait
//	empty                                                        no job waits
//	come                                                         expected workers become present, and take jobs
//	look [after=TIME]                                            the decision, and the report
func (w *world) command(t *testing.T, d *datadriven.TestData) string {
	numbers := map[string]int{"min": 0, "max": 8, "pilots": 100}
	set := func(key string, value int) { numbers[key] = value }
	switch d.Cmd {
	case "site":
		set("cpus", corral.Unlimited)
		set("memory", corral.Unlimited)
		set("disk", corral.Unlimited)
	case "worker":
		set("cpus", 2)
		set("memory", 1000)
		set("disk", 1000)
	case "scale":
		set("cpus", 2)
	default:
		set("cpus", 1)
	}
	texts := map[string]string{"left": "50m", "time": "1m", "after": "0s", "closed": ""}
	for _, key := range []string{"min", "max", "pilots", "cpus", "memory", "gpus", "disk"} {
		n := numbers[key]
		d.MaybeScanArgs(t, key, &n)
		numbers[key] = n
	}
	for key, text := range texts {
		d.MaybeScanArgs(t, key, &text)
		texts[key] = text
	}
	span := func(key string) time.Duration {
		s, err := time.ParseDuration(texts[key])
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	of := corral.Resources{CPUs: numbers["cpus"], MemoryMiB: numbers["memory"], GPUs: numbers["gpus"],
		DiskMiB: numbers["disk"]}
	switch d.Cmd {
	case "scale":
		w.scale.Min, w.scale.Max, w.scale.CPUs = numbers["min"], numbers["max"], numbers["cpus"]
	case "site":
		w.site(d.CmdArgs[0].Key, numbers["pilots"], texts["closed"], of)
	case "worker":
		w.Room, w.Held = append(w.Room, Room{of, span("left")}), w.Held+w.scale.CPUs
	case "queue":
		var jobs int
		if _, err := fmt.Sscan(d.CmdArgs[0].Key, &jobs); err != nil {
			t.Fatal(err)
		}
		w.Waiting = append(w.Waiting, matching.Class{Needs: matching.Resources{Resources: of, Time: span("time")}, Jobs: jobs})
	case "empty":
		w.Waiting = nil
	case "come":
		w.come()
	case "look":
		w.now = w.now.Add(span("after"))
		return told(w.look())
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	return "ok\n"
}

// site changes a site, or adds a queue to it, or creates it.
func (w *world) site(name string, pilots int, closed string, host corral.Resources) {
	i := slices.IndexFunc(w.Sites, func(s Supplier) bool { return s.Name == name })
	if i < 0 {
		i, w.Sites = len(w.Sites), append(w.Sites, Supplier{Name: name})
	}
	s := &w.Sites[i]
	s.Pilots, s.Closed = pilots, strings.ReplaceAll(closed, "_", " ")
	if host.CPUs != corral.Unlimited {
		s.Hosts = append(s.Hosts, host)
	}
}

// told returns a decision as text, with a line for each order.
func told(d Decision) string {
	var text strings.Builder
	for _, a := range d.Asks {
		what := "for " + a.Needs.String()
		if a.Keep {
			what = "to keep"
		}
		fmt.Fprintf(&text, "ask %s for a worker %s\n", a.Site, what)
	}
	for _, id := range d.Withdraw {
		fmt.Fprintf(&text, "withdraw %d\n", id)
	}
	for _, said := range strings.Split(d.Report, "; ") {
		fmt.Fprintf(&text, "- %s\n", said)
	}
	return text.String()
}

// drawn returns a random world.
func drawn(t *rapid.T) *world {
	n := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	of := func(what string, cpus int) corral.Resources {
		return corral.Resources{CPUs: cpus, MemoryMiB: n(what+" memory", 0, 8), GPUs: n(what+" gpus", 0, 2),
			DiskMiB: n(what+" disk", 0, 8)}
	}
	w := newWorld()
	w.scale.CPUs = n("cpus", 1, 4)
	w.scale.Max = n("maximum", w.scale.CPUs, 40)
	w.scale.Min = n("minimum", 0, w.scale.Max)
	for i := range n("sites", 1, 3) {
		s := Supplier{Name: fmt.Sprint(i), Pilots: n("pilots", 0, 20)}
		if n("closed", 0, 3) == 0 {
			s.Closed = "is closed"
		}
		disk := n("site disk", 0, 8) // disk of the site's workers, whatever their queue
		for range n("queues", 0, 2) {
			h := of("host", n("host cpus", 1, 6))
			h.DiskMiB = disk
			s.Hosts = append(s.Hosts, h)
		}
		w.Sites = append(w.Sites, s)
	}
	for range n("workers", 0, 4) {
		w.Room = append(w.Room, Room{of("free", n("free cpus", 0, w.scale.CPUs)), time.Hour})
		w.Held += w.scale.CPUs
	}
	w.Held += n("others", 0, 6) // cpus of draining workers
	for range n("classes", 0, 6) {
		w.Waiting = append(w.Waiting, matching.Class{Jobs: n("jobs", 1, 30), Needs: matching.Resources{
			Resources: of("job", n("job cpus", 1, 5)), Time: time.Duration(n("minutes", 1, 60)) * time.Minute}})
	}
	return w
}

// In any world, requests do not exceed the maximum, no request is made for jobs that fit a present worker, and no
// request exceeds the resources of its site.
func TestOrdersKeepToTheTerms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawn(t)
		held, left, sites := w.Held, w.unplaced(), slices.Clone(w.Sites)
		d := w.look()
		forJobs := 0
		for _, a := range d.Asks {
			s := &sites[slices.IndexFunc(sites, func(s Supplier) bool { return s.Name == a.Site })]
			s.Pilots--
			fits := func(h corral.Resources) bool { return w.scale.CPUs <= h.CPUs && a.Needs.FitIn(h) }
			if s.Closed != "" || s.Pilots < 0 || a.Needs.CPUs > w.scale.CPUs ||
				len(s.Hosts) > 0 && !slices.ContainsFunc(s.Hosts, fits) {
				t.Fatalf("%+v is asked of %+v", a, s)
			}
			if !a.Keep {
				forJobs++
			}
		}
		if after := held + len(d.Asks)*w.scale.CPUs; len(d.Asks) > 0 && after > w.scale.Max {
			t.Fatalf("%d cpus of at most %d", after, w.scale.Max)
		}
		if forJobs > left {
			t.Fatalf("%d workers for %d jobs that fit no worker that is there", forJobs, left)
		}
	})
}

// unplaced returns the number of jobs that are left after each job has been placed on the first worker that has room
// for it, as in the cluster: one worker after the other, in the order of the queue.
func (w *world) unplaced() (left int) {
	waiting := slices.Clone(w.Waiting)
	for _, r := range w.Room {
		for i := range waiting {
			for c := &waiting[i]; c.Jobs > 0 && c.Needs.FitIn(r.Free) && c.Needs.Time <= r.Left; c.Jobs-- {
				r.Free = r.Free.Minus(c.Needs.Resources)
			}
		}
	}
	return count(waiting)
}

// An unchanged queue leads to orders only once. After the requested workers have arrived, and after all jobs have
// ended, no orders follow either.
func TestOrdersComeToRest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawn(t)
		rest := func(when string) {
			w.now = w.now.Add(time.Second)
			if d := w.look(); len(d.Asks)+len(d.Withdraw) > 0 {
				t.Fatalf("%s: %s", when, told(d))
			}
		}
		w.look()
		rest("again")
		if rapid.Bool().Draw(t, "comes") {
			w.come()
			rest("when the workers are there")
		}
		w.Waiting = nil
		w.look()
		w.now = w.now.Add(time.Duration(w.scale.Idle))
		w.look()
		rest("when all jobs have ended")
		if len(w.Coming) > 0 && w.Held-w.scale.CPUs >= w.scale.Min {
			t.Fatalf("%d pilots wait for nothing beside %d cpus of at least %d", len(w.Coming), w.Held, w.scale.Min)
		}
	})
}
