package metrics

import (
	"math"
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
	sitesDesc    = gauge("corral_sites", "Sites by owner and state.", "owner", "state")
	glideinsDesc = gauge("corral_glideins", "Glideins by site and state.", "owner", "site", "state")
	attemptsDesc = gauge("corral_attempts", "Attempts of glideins that are not over, by site and state.",
		"owner", "site", "state")
	runsDesc  = gauge("corral_runs", "Runs by owner and state.", "owner", "state")
	tasksDesc = gauge("corral_tasks", "Tasks of runs that go on, by owner and state.", "owner", "state")
	endedDesc = gauge("corral_tasks_ended_total", "Tasks of all runs that are done, or failed for good, by owner.",
		"owner", "outcome")
	oldestDesc = gauge("corral_oldest_queued_seconds",
		"How long the attempt has waited that has waited longest in a site's queue; 0: none does.", "owner", "site")
	troubleDesc = gauge("corral_site_trouble_seconds",
		"For how long a site has not been reached, or has not answered as it should; 0: all is well.", "owner", "site")
	loginDesc = gauge("corral_site_login_needed", "1 if a site wants somebody to log in.", "owner", "site")
	heldDesc  = gauge("corral_site_held",
		"1 if attempts are kept from a site because the last ones came to nothing.", "owner", "site")
	expiryDesc = gauge("corral_credential_expiry_timestamp_seconds",
		"When the first of the credentials expires by which corrald is logged in at a site; +Inf: none does.",
		"owner", "site")
	workersDesc = gauge("corral_workers", "Workers that are connected, by cluster.", "owner", "cluster")
	cpusDesc    = gauge("corral_worker_cpus", "Cpus of workers that are connected, by cluster, busy and free.",
		"owner", "cluster", "use")
)

// A scrape is what one view of the store has shown so far.
type scrape struct {
	*sender
	from   Sources
	now    time.Time
	sites  []corral.Site
	owners map[string]bool // of sites and clusters: they have all series of owners, with 0
}

// A part of the metrics is read and sent by itself: what fails in it is not in the way of the others. Names of sites
// and clusters are unique only within an owner, so each series of one has its owner, too.
type part struct {
	name string
	send func(*store.WholeTx, *scrape) error
}

// parts are what is stored. The first two find the sites and the owners, which others need.
var parts = []part{
	{"sites", func(tx *store.WholeTx, s *scrape) (err error) {
		if s.sites, err = tx.Sites(store.Filter{}); err != nil {
			return err
		}
		for _, site := range s.sites {
			s.owners[site.Owner] = true
			s.gauge(troubleDesc, s.since(site.Trouble.Since), site.Owner, site.Name)
			s.gauge(loginDesc, truth(site.Trouble.LoginNeeded), site.Owner, site.Name)
			first, _ := credential.First(s.from.Credentials(site))
			s.gauge(expiryDesc, expiry(first.NotAfter), site.Owner, site.Name)
		}
		counts, err := tx.Counts(corral.ObjectSite)
		if err == nil {
			byOwner(s, sitesDesc, counts, corral.SiteStates)
		}
		return err
	}},
	{"clusters", func(tx *store.WholeTx, s *scrape) error {
		clusters, err := tx.Clusters(store.Filter{})
		for _, c := range clusters {
			s.owners[c.Owner] = true
			s.crowd(c)
		}
		return err
	}},
	{"glideins", func(tx *store.WholeTx, s *scrape) error {
		counts, err := tx.Counts(corral.ObjectGlidein)
		if err == nil {
			bySite(s, glideinsDesc, counts, corral.GlideinStates)
		}
		return err
	}},
	{"attempts", func(tx *store.WholeTx, s *scrape) error {
		counts, err := tx.Counts(corral.ObjectJob)
		if err == nil {
			bySite(s, attemptsDesc, counts, corral.JobStates)
		}
		return err
	}},
	{"queues", func(tx *store.WholeTx, s *scrape) error {
		oldest, err := tx.OldestQueued()
		if err != nil {
			return err
		}
		for _, site := range s.sites {
			s.gauge(oldestDesc, s.since(oldest[site.ID]), site.Owner, site.Name)
		}
		return nil
	}},
	{"holds", func(tx *store.WholeTx, s *scrape) error {
		for _, site := range s.sites {
			told, err := tx.Told(site.ID)
			if err != nil {
				return err
			}
			s.gauge(heldDesc, truth(s.now.Before(corral.NewHold(told).Until)), site.Owner, site.Name)
		}
		return nil
	}},
	{"runs", func(tx *store.WholeTx, s *scrape) error {
		counts, err := tx.Counts(corral.ObjectRun)
		if err == nil {
			byOwner(s, runsDesc, counts, corral.RunStates)
		}
		return err
	}},
	{"tasks", tasks},
}

// tasks sends those of runs that go on, and those that are over.
func tasks(tx *store.WholeTx, s *scrape) error {
	live, err := tx.Runs(store.RunFilter{States: []corral.RunState{corral.RunRunning, corral.RunCancelling}})
	if err != nil {
		return err
	}
	on := map[string]corral.RunTasks{}
	for _, r := range live {
		on[r.Owner] = sum(on[r.Owner], r.Tasks)
	}
	ended, err := tx.TasksEnded()
	if err != nil {
		return err
	}
	over := map[string]store.TasksOver{}
	for owner := range s.owners {
		over[owner] = store.TasksOver{}
	}
	for _, o := range ended { // of all who ever had a run
		over[o.Owner] = o
	}
	for owner, ended := range over {
		t := on[owner]
		for state, n := range map[corral.TaskState]int{
			corral.TaskWaiting: t.Waiting, corral.TaskReady: t.Ready, corral.TaskRunning: t.Running,
			corral.TaskDone: t.Done, corral.TaskFailed: t.Failed, corral.TaskSkipped: t.Skipped,
		} {
			s.gauge(tasksDesc, float64(n), owner, string(state))
		}
		s.send(endedDesc, prometheus.CounterValue, float64(ended.Done), owner, string(corral.TaskDone))
		s.send(endedDesc, prometheus.CounterValue, float64(ended.Failed), owner, string(corral.TaskFailed))
	}
	return nil
}

// sum adds counts of tasks up.
func sum(a, b corral.RunTasks) corral.RunTasks {
	return corral.RunTasks{Total: a.Total + b.Total, Waiting: a.Waiting + b.Waiting, Ready: a.Ready + b.Ready,
		Running: a.Running + b.Running, Done: a.Done + b.Done, Failed: a.Failed + b.Failed,
		Skipped: a.Skipped + b.Skipped}
}

// crowd counts the workers that are connected to a cluster.
func (s *scrape) crowd(c corral.Cluster) {
	var workers, cpus, free int
	for _, w := range s.from.Workers(c.ID) {
		if w.Connected {
			workers, cpus, free = workers+1, cpus+w.CPUs, free+w.CPUsFree
		}
	}
	s.gauge(workersDesc, float64(workers), c.Owner, c.Name)
	s.gauge(cpusDesc, float64(cpus-free), c.Owner, c.Name, "busy")
	s.gauge(cpusDesc, float64(free), c.Owner, c.Name, "free")
}

// bySite sends how many objects of each site are in each state, by the id of the site: a name is one of its owner's.
func bySite[S ~string](s *scrape, d *prometheus.Desc, counts []store.Count, states []S) {
	type in struct {
		site  corral.SiteID
		state S
	}
	found := map[in]int{}
	for _, c := range counts {
		found[in{c.Site, S(c.State)}] = c.N
	}
	for _, site := range s.sites {
		for _, state := range states {
			if !last(state) {
				s.gauge(d, float64(found[in{site.ID, state}]), site.Owner, site.Name, string(state))
			}
		}
	}
}

// byOwner sends how many objects of each owner are in each state. An owner without any has all series, too, with 0: a
// rate over a series that appears with its first object would miss that object.
func byOwner[S ~string](s *scrape, d *prometheus.Desc, counts []store.Count, states []S) {
	found := map[string]map[S]int{}
	for owner := range s.owners {
		found[owner] = map[S]int{}
	}
	for _, c := range counts {
		if found[c.Owner] == nil {
			found[c.Owner] = map[S]int{}
		}
		found[c.Owner][S(c.State)] = c.N
	}
	for owner, in := range found {
		for _, state := range states {
			if !last(state) {
				s.gauge(d, float64(in[state]), owner, string(state))
			}
		}
	}
}

// last says whether a state is one that objects do not leave, and in which they are not counted.
func last[S ~string](state S) bool { return state == "DELETED" || state == "ENDED" }

// since is how long ago something was, in seconds; 0 for the zero time.
func (s *scrape) since(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, s.now.Sub(at).Seconds())
}

// expiry is the end of a credential as Prometheus counts time; one that has none ends infinitely late.
func expiry(at time.Time) float64 {
	if at.IsZero() {
		return math.Inf(1)
	}
	return float64(at.Unix())
}

// truth is 1 for what holds, and 0 for what does not.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
