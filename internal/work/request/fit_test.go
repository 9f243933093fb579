package request

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// surveyed returns a site as found by a probe of its batch system.
func surveyed() corral.Site {
	const hour = corral.Seconds(time.Hour)
	return corral.Site{
		Name: "hpc", Contact: "ssh://hpc", Batch: "slurm", BatchOptions: corral.BatchOptions{Account: "phys"},
		Facts: &corral.SiteFacts{Queues: []corral.SiteQueue{
			{Name: "normal", Default: true, MaxWalltime: 24 * hour, Nodes: 40, CPUs: 64, MemoryMiB: 512_000, CPUMemoryMiB: 4000},
			{Name: "short", MaxWalltime: hour / 6, MaxNodes: 1, Nodes: 40, CPUs: 64, MemoryMiB: 256_000, CPUMemoryMiB: 3000},
			{Name: "gpu", Nodes: 2, CPUs: 32, MemoryMiB: 128_000, GPUs: 4, CPUMemoryMiB: 4000},
			{Name: "dark"}, // nothing is known about it
		}},
	}
}

func TestGlideinIsWithinLimits(t *testing.T) {
	t.Parallel()
	const hour = corral.Seconds(time.Hour)
	tests := []struct {
		name   string
		site   func(*corral.Site)
		ask    func(*corral.Glidein)
		place  string // of the error; empty: it fits
		says   []string
		memory int
	}{
		{name: "fits", memory: 8000},
		{name: "memory that was asked for", ask: func(g *corral.Glidein) { g.MemoryMiB = 500_000 }, memory: 500_000},
		{name: "walltime", ask: func(g *corral.Glidein) { g.Walltime = 25 * hour }, place: "walltime_s", says: []string{"25h0m0s", "max_walltime_s of queue normal", "24h0m0s", "site probe hpc"}},
		{name: "walltime of the site's QOS", site: func(s *corral.Site) { s.QOS = "tiny" }, ask: func(g *corral.Glidein) { g.Walltime = 25 * hour },
			place: "walltime_s", says: []string{"max_walltime_s of queue normal with QOS tiny"}},
		{name: "walltime of another QOS", ask: func(g *corral.Glidein) { g.Walltime, g.QOS = 25*hour, "long" }, memory: 8000},
		{name: "walltime of another account", ask: func(g *corral.Glidein) { g.Walltime, g.Account = 25*hour, "chem" }, memory: 8000},
		{name: "walltime of the site's account, named", ask: func(g *corral.Glidein) { g.Walltime, g.Account = 25*hour, "phys" }, place: "walltime_s"},
		{name: "walltime of another queue", ask: func(g *corral.Glidein) { g.Queue = "short" }, place: "walltime_s", says: []string{"queue short", "10m0s"}},
		{name: "the longer of two queues", ask: func(g *corral.Glidein) { g.Queue = "short,normal" }, memory: 6000},
		{name: "none of two queues", ask: func(g *corral.Glidein) { g.Queue, g.CPUs = "short,normal", 65 }, place: "cpus"},
		{name: "no limit", ask: func(g *corral.Glidein) { g.Queue, g.Walltime = "gpu", 1000*hour }, memory: 8000},
		{name: "nodes of a job", ask: func(g *corral.Glidein) { g.Queue, g.Walltime, g.Hosts = "short", hour/6, 2 }, place: "hosts", says: []string{"2 exceeds max_nodes of queue short", "which is 1"}},
		{name: "nodes of the queue", ask: func(g *corral.Glidein) { g.Hosts = 41 }, place: "hosts", says: []string{"nodes of queue normal", "which is 40"}},
		{name: "cpus", ask: func(g *corral.Glidein) { g.CPUs = 65 }, place: "cpus", says: []string{"65 exceeds cpus of queue normal", "which is 64"}},
		{name: "memory", ask: func(g *corral.Glidein) { g.MemoryMiB = 512_001 }, place: "memory_mib", says: []string{"512001 exceeds memory_mib of queue normal"}},
		{name: "gpus where there are none", ask: func(g *corral.Glidein) { g.GPUs = 1 }, place: "gpus", says: []string{"1 exceeds gpus of queue normal", "which is 0"}},
		{name: "a queue that is closed to the user", site: func(s *corral.Site) { s.Facts.Queues[0].Closed = "MaxJobs of account phys is 0" }, place: "queue",
			says: []string{"queue normal", "MaxJobs of account phys is 0", "site probe hpc"}},
		{name: "a closed queue, with another account", site: func(s *corral.Site) { s.Facts.Queues[0].Closed = "MaxJobs of account phys is 0" },
			ask: func(g *corral.Glidein) { g.Account = "chem" }, memory: 8000},
		{name: "gpus", ask: func(g *corral.Glidein) { g.Queue, g.GPUs = "gpu", 4 }, memory: 8000},
		{name: "too many gpus", ask: func(g *corral.Glidein) { g.Queue, g.GPUs = "gpu", 5 }, place: "gpus"},
		{name: "no such queue", ask: func(g *corral.Glidein) { g.Queue = "norml" }, place: "queue", says: []string{`no queue "norml"`, "normal, short, gpu"}},
		{name: "one of two queues is none", ask: func(g *corral.Glidein) { g.Queue = "normal," }, place: "queue"},
		{name: "the site's queue is gone", site: func(s *corral.Site) { s.Queue = "old" }, place: "queue", says: []string{`no queue "old"`}},
		{name: "the site's queue", site: func(s *corral.Site) { s.Queue = "short" }, place: "walltime_s"},
		{name: "nodes without the root", site: func(s *corral.Site) { s.Facts.Shared = new(bool) }, place: "site", says: []string{"do not see its root", "site probe hpc"}},
		{name: "no default queue", site: func(s *corral.Site) { s.Facts.Queues = s.Facts.Queues[1:] }, place: "queue", says: []string{"no default queue", "name one of short, gpu"}},
		{name: "nothing is known", site: func(s *corral.Site) { s.Facts = nil }, ask: func(g *corral.Glidein) { g.Queue, g.CPUs = "any", 999 }},
		{name: "nothing is known of the queue", ask: func(g *corral.Glidein) { g.Queue, g.CPUs, g.GPUs, g.Hosts = "dark", 999, 9, 99 }},
	}
	for _, tt := range tests {
		site := surveyed()
		if tt.site != nil {
			tt.site(&site)
		}
		g := corral.Glidein{Shape: corral.Shape{Hosts: 1, CPUs: 2, Walltime: hour}}
		if tt.ask != nil {
			tt.ask(&g)
		}
		refusedAt(t, tt.name, Fit(&g, site, corral.SiteQueue{}), tt.place, tt.says)
		if tt.place == "" && g.MemoryMiB != tt.memory {
			t.Errorf("%s: %d MiB, want %d", tt.name, g.MemoryMiB, tt.memory)
		}
	}
}

func refusedAt(t *testing.T, name string, err error, place string, says []string) {
	t.Helper()
	if place == "" {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	if corral.KindOf(err) != corral.Unsatisfiable || !strings.HasPrefix(err.Error(), place+": ") {
		t.Errorf("%s: %v, want it Unsatisfiable at %s", name, err, place)
		return
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, which does not say %q", name, err, want)
		}
	}
}

// A machine reached by ssh has its own limits, not those of corrald's machine.
func TestGlideinIsWithinMachine(t *testing.T) {
	t.Parallel()
	machine := corral.SiteQueue{CPUs: 2, MemoryMiB: 2000}
	here := corral.Site{Name: "here", Contact: localContact, Batch: "fork"}
	far := corral.Site{Name: "far", Contact: "ssh://far", Batch: "fork", Facts: &corral.SiteFacts{Queues: []corral.SiteQueue{{Name: "fork", CPUs: 8, MemoryMiB: 16_000}}}}
	unknown := corral.Site{Name: "new", Contact: "ssh://new", Batch: "fork"}
	for _, tt := range []struct {
		name   string
		site   corral.Site
		g      corral.Glidein
		place  string
		says   string
		memory int
	}{
		{name: "here", site: here, g: corral.Glidein{Shape: corral.Shape{Hosts: 1, CPUs: 1}}, memory: 1000},
		{name: "more than here", site: here, g: corral.Glidein{
			Shape: corral.Shape{Hosts: 1, CPUs: 3}}, place: "cpus", says: "this machine has 2"},
		{name: "far", site: far, g: corral.Glidein{Shape: corral.Shape{Hosts: 2, CPUs: 4}}, memory: 8000},
		{name: "more hosts than cpus", site: far, g: corral.Glidein{
			Shape: corral.Shape{Hosts: 16, CPUs: 1}}, memory: 1000},
		{name: "more than far", site: far, g: corral.Glidein{
			Shape: corral.Shape{Hosts: 1, CPUs: 9}}, place: "cpus", says: "the machine of site far has 8"},
		{name: "memory", site: far, g: corral.Glidein{
			Shape: corral.Shape{Hosts: 2, CPUs: 1, MemoryMiB: 8001}}, place: "memory_mib", says: "has 16000 MiB"},
		{name: "unknown", site: unknown, g: corral.Glidein{Shape: corral.Shape{Hosts: 1, CPUs: 99}}},
		{name: "queue", site: unknown, g: corral.Glidein{
			Shape:        corral.Shape{Hosts: 1, CPUs: 1},
			BatchOptions: corral.BatchOptions{Queue: "q"}}, place: "queue", says: "fork does not support this"},
		{name: "gpus", site: here, g: corral.Glidein{
			Shape: corral.Shape{Hosts: 1, CPUs: 1, GPUs: 1}}, place: "gpus", says: "fork has none"},
	} {
		err := Fit(&tt.g, tt.site, machine)
		refusedAt(t, tt.name, err, tt.place, []string{tt.says})
		if tt.place == "" && tt.g.MemoryMiB != tt.memory {
			t.Errorf("%s: %d MiB, want %d", tt.name, tt.g.MemoryMiB, tt.memory)
		}
	}
}

// A site whose options prevent pilots from starting is refused; a site with at least one open queue is not.
func TestSiteIsOpen(t *testing.T) {
	t.Parallel()
	site := surveyed()
	facts := site.Facts
	facts.Queues[0].Closed = `there is no QOS "lnog"`
	if err := CheckQueues(site); corral.KindOf(err) != corral.Unsatisfiable || !strings.Contains(err.Error(), `queue normal`) || !strings.Contains(err.Error(), `there is no QOS "lnog"`) {
		t.Errorf("a closed default queue: %v", err)
	}
	site.Queue = "normal,gpu"
	if err := CheckQueues(site); err != nil {
		t.Errorf("one of two queues is open: %v", err)
	}
}

func TestHostsOfAPilot(t *testing.T) {
	t.Parallel()
	const hour, any = corral.Seconds(time.Hour), corral.Unlimited
	fork := corral.Site{Contact: "local:", Batch: corral.ForkBatch}
	for name, test := range map[string]struct {
		site  corral.Site
		queue string
		want  []corral.Resources
	}{
		"the default queue":     {surveyed(), "", []corral.Resources{{CPUs: 64, MemoryMiB: 512_000, DiskMiB: any}}},
		"queues that take it":   {surveyed(), "short,gpu", []corral.Resources{{CPUs: 32, MemoryMiB: 128_000, GPUs: 4, DiskMiB: any}}},
		"nothing is known":      {corral.Site{Batch: "slurm"}, "", []corral.Resources{{CPUs: any, MemoryMiB: any, GPUs: any, DiskMiB: any}}},
		"a machine":             {fork, "", []corral.Resources{{CPUs: 8, MemoryMiB: 16_000, DiskMiB: any}}},
		"a machine not yet met": {corral.Site{Contact: "ssh://x", Batch: corral.ForkBatch}, "", []corral.Resources{{CPUs: any, MemoryMiB: any, DiskMiB: any}}},
	} {
		g := corral.Glidein{
			Shape:        corral.Shape{Hosts: 1, CPUs: 2, Walltime: hour},
			BatchOptions: corral.BatchOptions{Queue: test.queue}}
		if got := Hosts(g, test.site, corral.SiteQueue{CPUs: 8, MemoryMiB: 16_000}); !slices.Equal(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
