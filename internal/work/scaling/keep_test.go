package scaling

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// A scene contains clusters that are scaled at two sites with Slurm, small with hosts of 2 cpus and 8000 MiB and
// large with hosts of 16 cpus, 64000 MiB and 2 GPUs. It also implements Clusters.
type scene struct {
	t       *testing.T
	db      *store.DB
	keeper  *keeper
	waiting map[corral.ClusterID][]matching.Class
	workers map[corral.ClusterID][]corral.Worker
}

// Waiting implements Clusters.
func (s *scene) Waiting(_ context.Context, c corral.ClusterID) ([]matching.Class, error) {
	return s.waiting[c], nil
}

// Workers implements Clusters.
func (s *scene) Workers(c corral.ClusterID) []corral.Worker { return s.workers[c] }

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, db: storetest.OpenTest(t), waiting: map[corral.ClusterID][]matching.Class{},
		workers: map[corral.ClusterID][]corral.Worker{}}
	s.keeper = &keeper{slog.New(slog.DiscardHandler), s.db, s, corral.SiteQueue{}}
	s.write(func(tx *store.Tx) error {
		for name, q := range map[string]corral.SiteQueue{
			"small": {CPUs: 2, MemoryMiB: 8000}, "large": {CPUs: 16, MemoryMiB: 64000, GPUs: 2},
		} {
			q.Name, q.Default, q.Nodes, q.CPUMemoryMiB = "normal", true, 4, 1000
			site, err := tx.CreateSite(corral.Site{Name: name, Owner: "ada", Contact: "ssh://" + name, Batch: "slurm",
				Root: "/srv/" + name, Facts: &corral.SiteFacts{Queues: []corral.SiteQueue{q}}})
			if err == nil {
				_, err = tx.MoveSite(site.ID, corral.SiteStage, "")
			}
			if err == nil {
				_, err = tx.MoveSite(site.ID, corral.SiteStaged, "")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return s
}

func (s *scene) write(fn func(*store.Tx) error) {
	s.t.Helper()
	if err := storetest.All(s.db).Write(s.t.Context(), "ada", fn); err != nil {
		s.t.Fatal(err)
	}
}

// scaled creates a cluster that is scaled at both sites.
func (s *scene) scaled(name string, cpus int) *scaler {
	s.t.Helper()
	var made corral.Scale
	s.write(func(tx *store.Tx) (err error) {
		c, err := tx.CreateCluster(corral.Cluster{Name: name, Owner: "ada", Kind: corral.Embedded})
		if err != nil {
			return err
		}
		terms := corral.Scale{Cluster: c.ID, Owner: "ada", Max: 32, CPUs: cpus, Walltime: corral.Seconds(time.Hour),
			Idle: corral.Seconds(time.Minute)}
		for _, name := range []string{"small", "large"} {
			site, err := tx.SiteNamed(name)
			if err != nil {
				return err
			}
			terms.SiteIDs = append(terms.SiteIDs, site.ID)
		}
		made, err = tx.CreateScale(terms)
		return err
	})
	return s.keeper.scaler(made)
}

// wait adds waiting jobs to a cluster.
func (s *scene) wait(k *scaler, jobs int, needs corral.Resources) {
	s.waiting[k.cluster] = []matching.Class{{Needs: matching.Resources{Resources: needs, Time: time.Minute}, Jobs: jobs}}
}

// look performs one check of a cluster, and returns the cluster's glideins and the report.
func (s *scene) look(k *scaler) (asked []corral.Glidein, report string) {
	s.t.Helper()
	if _, err := k.look(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.write(func(tx *store.Tx) (err error) {
		asked, err = tx.Glideins(store.GlideinFilter{Cluster: k.cluster, Live: true})
		if err == nil {
			scale, err := tx.Scale(k.cluster)
			report = scale.Report
			return err
		}
		return err
	})
	return asked, report
}

// brief describes glideins in a form that is easy to compare.
func brief(all []corral.Glidein) string {
	var said []string
	for _, g := range all {
		said = append(said, fmt.Sprintf("%s at %s", g.Host(), g.SiteName))
	}
	return strings.ReplaceAll(strings.Join(said, "; "), ", 1073741824 MiB of disk", "")
}

func TestWorkerIsRequestedWhereAHostFits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cpus, jobs int
		needs      corral.Resources
		want, says string
	}{
		"at the first site": {2, 2, corral.Resources{CPUs: 1}, "2 cpus, 2000 MiB of memory at small", ""},
		"no more jobs than a host's memory is for": {2, 3, corral.Resources{CPUs: 1, MemoryMiB: 5000},
			"2 cpus, 5000 MiB of memory at small; 2 cpus, 5000 MiB of memory at small; 2 cpus, 5000 MiB of memory at small", ""},
		"memory that only the second has": {2, 1, corral.Resources{CPUs: 1, MemoryMiB: 9000},
			"2 cpus, 9000 MiB of memory at large", ""},
		"gpus that only the second has": {2, 3, corral.Resources{CPUs: 1, GPUs: 1},
			"2 cpus, 2000 MiB of memory, 2 gpus at large; 2 cpus, 2000 MiB of memory, 1 gpu at large", ""},
		"cpus of a worker that only the second has": {4, 1, corral.Resources{CPUs: 1},
			"4 cpus, 4000 MiB of memory at large", ""},
		"memory that none has": {2, 1, corral.Resources{CPUs: 1, MemoryMiB: 65000}, "",
			"1 job needs 1 cpu, 65000 MiB of memory: the largest host of site small has 2 cpus and 8000 MiB of memory, " +
				"the largest host of site large has 16 cpus and 64000 MiB of memory"},
		"gpus that none has": {2, 7, corral.Resources{CPUs: 1, GPUs: 3}, "", "7 jobs need 1 cpu, 3 gpus: " +
			"the largest host of site small has 2 cpus and 0 gpus, the largest host of site large has 16 cpus and 2 gpus"},
		"cpus of a worker that none has": {17, 1, corral.Resources{CPUs: 1}, "",
			"site large has no such workers: cpus: 17 exceeds cpus of queue normal at site large, which is 16"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			k := s.scaled("mine", test.cpus)
			s.wait(k, test.jobs, test.needs)
			for range 3 { // the result is the same at each check
				if got, report := s.look(k); brief(got) != test.want || !strings.Contains(report, test.says) {
					t.Fatalf("asked for %q, want %q; %s", brief(got), test.want, report)
				}
			}
		})
	}
}

// works starts a cluster's glideins, each as one worker with these resources.
func (s *scene) works(k *scaler, all []corral.Glidein, host, free corral.Resources) {
	s.t.Helper()
	for _, g := range all {
		tag := fmt.Sprintf("tag-%d", g.ID)
		var j corral.Job
		s.write(func(tx *store.Tx) (err error) {
			if j, err = tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: g.Site, Glidein: g.ID, Tag: tag}); err == nil {
				_, err = tx.MoveJob(j.ID, corral.JobEvent{Move: corral.JobSubmit, SiteJobID: tag})
			}
			if err == nil {
				_, err = tx.MoveJob(j.ID, corral.JobEvent{Move: corral.JobStart, SiteJobID: tag})
			}
			return err
		})
		w := corral.Worker{ID: tag + "/0", Glidein: g.ID, Attempt: j.ID, CPUs: host.CPUs, MemoryMiB: host.MemoryMiB,
			GPUs: host.GPUs, DiskMiB: host.DiskMiB, Connected: true, EndsAt: time.Now().Add(time.Hour)}
		w.SetFree(free)
		s.workers[k.cluster] = append(s.workers[k.cluster], w)
	}
}

// A worker with half of its cpus free may have all of its memory free, or none.
func TestFreeResourcesAreTheReportedOnes(t *testing.T) {
	t.Parallel()
	host := corral.Resources{CPUs: 2, MemoryMiB: 2000, GPUs: 2, DiskMiB: 100}
	for name, test := range map[string]struct {
		needs, free corral.Resources
		workers     int // expected in the end
		says        string
	}{
		"all memory": {corral.Resources{CPUs: 1, MemoryMiB: 1900}, corral.Resources{CPUs: 1, MemoryMiB: 1900}, 1, ""},
		"no memory":  {corral.Resources{CPUs: 1, MemoryMiB: 100}, corral.Resources{CPUs: 1}, 2, ""},
		"all gpus":   {corral.Resources{CPUs: 1, GPUs: 2}, corral.Resources{CPUs: 1, GPUs: 2}, 1, ""},
		"no gpu":     {corral.Resources{CPUs: 1, GPUs: 1}, corral.Resources{CPUs: 1, MemoryMiB: 1000}, 2, ""},
		"memory of which nothing is said": {corral.Resources{CPUs: 1, MemoryMiB: 1900},
			corral.Resources{CPUs: 1, MemoryMiB: corral.Unlimited}, 1,
			"1 of these is taken to fit though not all is known of the workers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			k := s.scaled("mine", 2)
			s.wait(k, 1, corral.Resources{CPUs: 1})
			first, _ := s.look(k)
			s.works(k, first, host, test.free)
			s.wait(k, 1, test.needs)
			if got, report := s.look(k); len(got) != test.workers || !strings.Contains(report, test.says) {
				t.Errorf("%d workers, want %d: %s", len(got), test.workers, report)
			}
		})
	}
}

// Disk cannot be requested. The disk of a site's workers is known once the first worker is present, and even after it
// has left.
func TestNoWorkerIsRequestedForUnavailableDisk(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	k := s.scaled("mine", 2)
	s.wait(k, 1, corral.Resources{CPUs: 1, DiskMiB: 500})
	first, _ := s.look(k)
	if len(first) != 1 || first[0].SiteName != "small" {
		t.Fatalf("asked for %s, want one at small", brief(first))
	}
	host := corral.Resources{CPUs: 2, MemoryMiB: 2000, DiskMiB: 400}
	s.works(k, first, host, host)
	second, _ := s.look(k)
	if len(second) != 2 || second[1].SiteName != "large" {
		t.Fatalf("asked for %s, want another at large", brief(second))
	}
	s.works(k, second[1:], host, host)
	for range 3 {
		got, report := s.look(k)
		const want = "1 job needs 1 cpu, 500 MiB of disk: the largest host of site small has 2 cpus and 400 MiB of " +
			"disk, the largest host of site large has 16 cpus and 400 MiB of disk"
		if len(got) != 2 || !strings.Contains(report, want) {
			t.Fatalf("asked for %s: %s", brief(got), report)
		}
		s.workers[k.cluster] = nil // the workers have left
		s.write(func(tx *store.Tx) (err error) {
			for _, g := range got {
				if err == nil {
					_, err = tx.AskGlidein(g.ID, corral.AskDrain, "")
				}
			}
			return err
		})
	}
}

// A site may provide less than requested. The same request is not made again there.
func TestNoWorkerIsRequestedBeyondSiteLimits(t *testing.T) {
	t.Parallel()
	for name, needs := range map[string]corral.Resources{
		"2 gpus": {CPUs: 1, GPUs: 2}, "9000 MiB of memory": {CPUs: 1, MemoryMiB: 9000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			k := s.scaled("mine", 2)
			s.wait(k, 1, needs)
			first, _ := s.look(k)
			host := corral.Resources{CPUs: 2, MemoryMiB: 8000, GPUs: 1, DiskMiB: 100}
			s.works(k, first, host, host)
			for range 3 {
				got, report := s.look(k)
				if len(got) != 1 || !strings.Contains(report, "1 job needs 1 cpu, "+name) {
					t.Fatalf("asked for %s: %s", brief(got), report)
				}
			}
			s.wait(k, 3, corral.Resources{CPUs: 1, MemoryMiB: 8000})
			if got, report := s.look(k); len(got) != 3 {
				t.Fatalf("asked for %s: %s", brief(got), report)
			}
		})
	}
}

// A value that was found at only one check, from a worker that has left since, may be a hiccup, so the worker is
// requested again. If low values were found at two consecutive checks, the larger of the two is the site's limit.
func TestSiteLimitNeedsTwoLooks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		seen    []int // MiB of memory, at one check after the other; 9000 were requested
		needs   int   // MiB that a job needs after that
		workers int   // expected in the end
	}{
		"once":                   {[]int{100}, 9000, 2},
		"twice":                  {[]int{8000, 8000}, 9000, 1},
		"twice, and differently": {[]int{100, 8500}, 8500, 2},
		"once, and all of it":    {[]int{100, 9000}, 9000, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			k := s.scaled("mine", 2)
			s.wait(k, 1, corral.Resources{CPUs: 1, MemoryMiB: 9000})
			first, _ := s.look(k)
			host := corral.Resources{CPUs: 2, DiskMiB: 100}
			s.works(k, first, host, corral.Resources{}) // all resources are in use
			for _, memory := range test.seen {
				s.workers[k.cluster][0].MemoryMiB = memory
				if got, report := s.look(k); len(got) != 1 && memory < 9000 {
					t.Fatalf("%d workers when %d MiB are seen: %s", len(got), memory, report)
				}
			}
			s.workers[k.cluster] = nil // the worker has left
			s.write(func(tx *store.Tx) error {
				_, err := tx.AskGlidein(first[0].ID, corral.AskDrain, "")
				return err
			})
			s.wait(k, 1, corral.Resources{CPUs: 1, MemoryMiB: test.needs})
			for range 3 {
				if got, report := s.look(k); len(got) != test.workers {
					t.Fatalf("%d workers, want %d: %s", len(got), test.workers, report)
				}
			}
		})
	}
}

// An allocation limits the cost of all pilots of a site: workers are requested only within the allocation, whichever
// pilots spend it.
func TestWorkersAreRequestedWithinTheAllocation(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	k := s.scaled("mine", 2)
	s.write(func(tx *store.Tx) error {
		for _, name := range []string{"small", "large"} {
			site, err := tx.SiteNamed(name)
			if err == nil {
				_, err = tx.SetSite(site.ID, func(c *corral.Site) { c.Allocation = "5ch" })
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	s.wait(k, 20, corral.Resources{CPUs: 1})
	const each = "2 cpus, 2000 MiB of memory at "
	const want = each + "small; " + each + "small; " + each + "large; " + each + "large"
	says := "site small takes no more pilots"
	for range 3 {
		got, report := s.look(k)
		if brief(got) != want {
			t.Fatalf("asked for %s", brief(got))
		}
		if !strings.Contains(report, says) {
			t.Fatal(report)
		}
		says = "site small has only 1ch of its allocation left after what its pilots may still cost, but a worker for 1h0m0s may " +
			"cost 2ch; site large has only 1ch of its allocation left"
	}
}

// A tariff may weigh GPUs and memory: the workers that jobs with such needs get cost more than their cpus.
func TestGPUsAndMemoryOfWorkersAreCharged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needs corral.Resources
		asks  int
		says  string
	}{
		"cpus":   {corral.Resources{CPUs: 2}, 6, "site large takes no more pilots by its limits"},
		"gpus":   {corral.Resources{CPUs: 2, GPUs: 1}, 1, "site large refuses a worker: it has only 2SU of its allocation left"},
		"memory": {corral.Resources{CPUs: 2, MemoryMiB: 13 * 1024}, 0, "a worker for 1h0m0s may cost 13SU"},
	} {
		s := newScene(t)
		k := s.scaled("mine", 2)
		s.write(func(tx *store.Tx) error {
			site, err := tx.SiteNamed("large")
			if err == nil {
				_, err = tx.SetSite(site.ID, func(c *corral.Site) {
					c.Price, c.Allocation = "1SU/max(cpu=1,mem=1,gpu=10)-hour", "12SU"
				})
			}
			if err != nil {
				return err
			}
			small, err := tx.SiteNamed("small")
			if err == nil {
				_, err = tx.SetSite(small.ID, func(c *corral.Site) { c.Price, c.Allocation = "1SU/cpu-hour", "1SU" })
			}
			return err
		})
		s.wait(k, 20, c.needs)
		asked, report := s.look(k)
		if len(asked) != c.asks || !strings.Contains(report, c.says) {
			t.Errorf("%s: asked for %s: %s", name, brief(asked), report)
		}
	}
}

// Scales begin and end while corrald is running, and a scale that is created again is carried out again.
func TestScalesThatComeAndGoAreKept(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a, b := s.scaled("a", 2), s.scaled("b", 2)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- Keep(ctx, s.keeper.lg, s.db, s, corral.SiteQueue{}) }()
	report := func(k *scaler) (said string) {
		_ = storetest.All(s.db).View(t.Context(), func(tx *store.Tx) error {
			scale, err := tx.Scale(k.cluster)
			said = scale.Report
			return err
		})
		return said
	}
	until := func(k *scaler, want string) {
		for {
			changed := s.db.Changed(store.Subject{Object: corral.ObjectCluster, ID: int64(k.cluster)})
			if report(k) == want {
				return
			}
			<-changed
		}
	}
	until(a, "no job waits")
	until(b, "no job waits")
	var before corral.Scale
	s.write(func(tx *store.Tx) (err error) {
		if before, err = tx.Scale(a.cluster); err == nil {
			err = Release(tx, before, "")
		}
		return err
	})
	s.write(func(tx *store.Tx) error {
		before.Report = ""
		_, err := tx.CreateScale(before)
		return err
	})
	until(a, "no job waits")
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTwoScalesDoNotMix(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a, b := s.scaled("a", 2), s.scaled("b", 2)
	for _, k := range []*scaler{a, b} {
		s.wait(k, 1, corral.Resources{CPUs: 1})
		s.look(k)
	}
	s.wait(a, 0, corral.Resources{CPUs: 1})
	got, _ := s.look(a)
	since := a.spare[got[0].ID]
	s.look(b)
	if s.look(a); since.IsZero() || !a.spare[got[0].ID].Equal(since) {
		t.Errorf("spare since %v, want %v", a.spare[got[0].ID], since)
	}
	s.wait(a, 1, corral.Resources{CPUs: 1})
	if s.look(a); len(a.spare) > 0 {
		t.Errorf("needed again, and yet spare: %v", a.spare)
	}
	failed := corral.Glidein{State: corral.GlideinFailed, Site: got[0].Site, UpdatedAt: time.Now()}
	a.failed[failed.Site] = a.failed[failed.Site].and(failed)
	s.wait(b, 4, corral.Resources{CPUs: 1})
	if got, report := s.look(b); len(got) != 2 || got[1].SiteName != "small" {
		t.Errorf("b asks for %s after a pilot of a has failed at small: %s", brief(got), report)
	}
	s.wait(a, 4, corral.Resources{CPUs: 1})
	if got, _ := s.look(a); len(got) != 2 || got[1].SiteName != "large" {
		t.Errorf("a asks for %s after its pilot has failed at small", brief(got))
	}
}

func TestPilotsEndedByOneHiccupCountAsOneFailure(t *testing.T) {
	t.Parallel()
	failed := func(asked, ended time.Duration) corral.Glidein {
		return corral.Glidein{State: corral.GlideinFailed, CreatedAt: now.Add(asked), UpdatedAt: now.Add(ended)}
	}
	drained := failed(3*time.Minute, 4*time.Minute)
	drained.Asked = corral.AskDrain
	f := failures{}.and(failed(0, time.Minute)).and(failed(time.Second, time.Minute)).and(drained)
	if f.n != 1 {
		t.Errorf("%d failures, want 1", f.n)
	}
	if f = f.and(failed(2*time.Minute, 3*time.Minute)); f.n != 2 {
		t.Errorf("%d failures, want 2: the second pilot was asked for after the first failure", f.n)
	}
	if f = f.and(corral.Glidein{State: corral.GlideinFinished}); f.n != 0 {
		t.Errorf("%d failures after a pilot that worked", f.n)
	}
}
