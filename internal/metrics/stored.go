package metrics

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/internal/store"
)

// gauge describes a metric that is read when Prometheus asks.
func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	sitesDesc    = gauge("corral_sites", "Sites by state.", "state")
	glideinsDesc = gauge("corral_glideins", "Glideins by site and state.", "site", "state")
	attemptsDesc = gauge("corral_attempts", "Attempts of glideins that are not over, by site and state.",
		"site", "state")
	runsDesc   = gauge("corral_runs", "Runs by state.", "state")
	tasksDesc  = gauge("corral_tasks", "Tasks of runs that go on, by state.", "state")
	endedDesc  = gauge("corral_tasks_ended_total", "Tasks of all runs that are done, or failed for good.", "outcome")
	oldestDesc = gauge("corral_oldest_queued_seconds",
		"How long the attempt has waited that has waited longest in a site's queue; 0: none does.", "site")
	troubleDesc = gauge("corral_site_trouble_seconds",
		"For how long a site has not been reached, or has not answered as it should; 0: all is well.", "site")
	loginDesc = gauge("corral_site_login_needed", "1 if a site wants somebody to log in.", "site")
	heldDesc  = gauge("corral_site_held",
		"1 if attempts are kept from a site because the last ones came to nothing.", "site")
	expiryDesc = gauge("corral_credential_expiry_timestamp_seconds",
		"When the first of the credentials expires by which corrald is logged in at a site; +Inf: none does.", "site")
	workersDesc = gauge("corral_workers", "Workers that are connected, by cluster.", "cluster")
	cpusDesc    = gauge("corral_worker_cpus", "Cpus of workers that are connected, by cluster, busy and free.",
		"cluster", "use")
)

// stored reads what is in the store, in one view, whenever Prometheus asks. It knows which sites there are, so it also
// says of which the others have series.
type stored struct {
	lg    *slog.Logger
	db    *store.DB
	from  Sources
	sites []perSite

	mu   sync.Mutex      // guards told
	told map[string]bool // sites whose series were begun
}

// Describe implements prometheus.Collector.
func (s *stored) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{sitesDesc, glideinsDesc, attemptsDesc, runsDesc, tasksDesc, endedDesc,
		oldestDesc, troubleDesc, loginDesc, heldDesc, expiryDesc, workersDesc, cpusDesc} {
		to <- d
	}
	for _, of := range s.sites {
		of.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (s *stored) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	p, err := store.ReadWhole(ctx, s.db, look)
	if err != nil {
		s.lg.Warn("reading metrics", "error", err)
		to <- prometheus.NewInvalidMetric(sitesDesc, err)
		return
	}
	s.tell(p.sites)
	for _, of := range s.sites {
		of.Collect(to)
	}
	p.send(func(d *prometheus.Desc, v float64, labels ...string) {
		kind := prometheus.GaugeValue
		if d == endedDesc {
			kind = prometheus.CounterValue
		}
		to <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	})
	for _, site := range p.sites {
		first, _ := credential.First(s.from.Credentials(site))
		to <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, expiry(first.NotAfter), site.Name)
	}
	for _, c := range p.clusters {
		s.crowd(to, c)
	}
}

// tell begins the series of new sites, and ends those of sites that are gone.
func (s *stored) tell(sites []corral.Site) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.told
	s.told = map[string]bool{}
	for _, site := range sites {
		s.told[site.Name] = true
		if !gone[site.Name] {
			for _, of := range s.sites {
				of.begin(site.Name)
			}
		}
		delete(gone, site.Name)
	}
	for name := range gone {
		for _, of := range s.sites {
			of.end(name)
		}
	}
}

// crowd counts who is registered in a cluster.
func (s *stored) crowd(to chan<- prometheus.Metric, c corral.Cluster) {
	var workers, cpus, free int
	for _, w := range s.from.Workers(c.ID) {
		if w.Connected {
			workers, cpus, free = workers+1, cpus+w.CPUs, free+w.CPUsFree
		}
	}
	send := func(d *prometheus.Desc, v int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	send(workersDesc, workers, c.Name)
	send(cpusDesc, cpus-free, c.Name, "busy")
	send(cpusDesc, free, c.Name, "free")
}

// A picture is what is stored at one time.
type picture struct {
	now          time.Time
	sites        []corral.Site
	clusters     []corral.Cluster
	counts       map[string][]store.Count // :: kind of object
	tasks        corral.RunTasks          // of runs that go on
	done, failed int64                    // tasks of all runs
	oldest       map[string]time.Time     // :: site
	held         map[string]bool          // :: site
}

// look reads a picture.
func look(tx *store.WholeTx) (p picture, err error) {
	p = picture{now: tx.Now(), counts: map[string][]store.Count{}, held: map[string]bool{}}
	if p.sites, err = tx.Sites(store.Filter{}); err != nil {
		return p, err
	}
	if p.clusters, err = tx.Clusters(store.Filter{}); err != nil {
		return p, err
	}
	for _, object := range []string{corral.ObjectSite, corral.ObjectGlidein, corral.ObjectJob, corral.ObjectRun} {
		if p.counts[object], err = tx.Counts(object); err != nil {
			return p, err
		}
	}
	live, err := tx.Runs(store.RunFilter{States: []corral.RunState{corral.RunRunning, corral.RunCancelling}})
	if err != nil {
		return p, err
	}
	for _, r := range live {
		p.tasks = sum(p.tasks, r.Tasks)
	}
	if p.done, p.failed, err = tx.TasksEnded(); err != nil {
		return p, err
	}
	if p.oldest, err = tx.OldestQueued(); err != nil {
		return p, err
	}
	for _, s := range p.sites {
		told, err := tx.Told(s.ID)
		if err != nil {
			return p, err
		}
		p.held[s.Name] = p.now.Before(corral.NewHold(told).Until)
	}
	return p, nil
}

// sum adds counts of tasks up.
func sum(a, b corral.RunTasks) corral.RunTasks {
	return corral.RunTasks{Total: a.Total + b.Total, Waiting: a.Waiting + b.Waiting, Ready: a.Ready + b.Ready,
		Running: a.Running + b.Running, Done: a.Done + b.Done, Failed: a.Failed + b.Failed,
		Skipped: a.Skipped + b.Skipped}
}

// send calls with each series.
func (p picture) send(with func(d *prometheus.Desc, v float64, labels ...string)) {
	byState(p.counts[corral.ObjectSite], corral.SiteStates, func(_, state string, n float64) {
		with(sitesDesc, n, state)
	}, "")
	byState(p.counts[corral.ObjectRun], corral.RunStates, func(_, state string, n float64) {
		with(runsDesc, n, state)
	}, "")
	var names []string
	for _, s := range p.sites {
		names = append(names, s.Name)
	}
	byState(p.counts[corral.ObjectGlidein], corral.GlideinStates, func(site, state string, n float64) {
		with(glideinsDesc, n, site, state)
	}, names...)
	byState(p.counts[corral.ObjectJob], corral.JobStates, func(site, state string, n float64) {
		with(attemptsDesc, n, site, state)
	}, names...)
	for state, n := range map[corral.TaskState]int{
		corral.TaskWaiting: p.tasks.Waiting, corral.TaskReady: p.tasks.Ready, corral.TaskRunning: p.tasks.Running,
		corral.TaskDone: p.tasks.Done, corral.TaskFailed: p.tasks.Failed, corral.TaskSkipped: p.tasks.Skipped,
	} {
		with(tasksDesc, float64(n), string(state))
	}
	with(endedDesc, float64(p.done), string(corral.TaskDone))
	with(endedDesc, float64(p.failed), string(corral.TaskFailed))
	for _, s := range p.sites {
		with(oldestDesc, p.since(p.oldest[s.Name]), s.Name)
		with(troubleDesc, p.since(s.Trouble.Since), s.Name)
		with(loginDesc, truth(s.Trouble.LoginNeeded), s.Name)
		with(heldDesc, truth(p.held[s.Name]), s.Name)
	}
}

// byState calls with each state, at each site, and how many objects are in it. A state that objects leave for good, the
// last one, is not among those that are counted.
func byState[S ~string](counts []store.Count, states []S, with func(site, state string, n float64), sites ...string) {
	type in struct{ site, state string }
	found := map[in]int{}
	for _, c := range counts {
		found[in{c.Site, c.State}] = c.N
	}
	for _, site := range sites {
		for _, state := range states {
			if state != "DELETED" && state != "ENDED" {
				with(site, string(state), float64(found[in{site, string(state)}]))
			}
		}
	}
}

// since is how long ago something was, in seconds; 0 for the zero time.
func (p picture) since(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, p.now.Sub(at).Seconds())
}

// expiry is the end of a credential as Prometheus counts time; one that has none ends infinitely late.
func expiry(at time.Time) float64 {
	if at.IsZero() {
		return math.Inf(1)
	}
	return float64(at.Unix())
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
