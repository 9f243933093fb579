package metrics

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/internal/store"
)

// gauge describes a metric that is read at each scrape.
func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	sitesDesc    = gauge("corral_sites", "Sites by owner and state.", "owner", "state")
	glideinsDesc = gauge("corral_glideins", "Glideins by site and state.", "owner", "site", "state")
	attemptsDesc = gauge("corral_attempts", "Live attempts of glideins, by site and state.",
		"owner", "site", "state")
	runsDesc  = gauge("corral_runs", "Runs by owner and state.", "owner", "state")
	tasksDesc = gauge("corral_tasks", "Tasks of unfinished runs, by owner and state.", "owner", "state")
	endedDesc = gauge("corral_tasks_ended_total", "Tasks of all runs that are done, or failed for good, by owner.",
		"owner", "outcome")
	oldestDesc = gauge("corral_oldest_queued_seconds",
		"Waiting time of the oldest attempt in a site's queue; 0: none is waiting.", "owner", "site")
	troubleDesc = gauge("corral_site_trouble_seconds",
		"How long a site has been unreachable or not answering properly; 0: no trouble.", "owner", "site")
	loginDesc = gauge("corral_site_login_needed", "1 if a site needs a person to log in.", "owner", "site")
	heldDesc  = gauge("corral_site_held",
		"1 if attempts at a site are on hold because the last ones failed.", "owner", "site")
	expiryDesc = gauge("corral_credential_expiry_timestamp_seconds",
		"When the first of the credentials of corrald's login at a site expires; +Inf: none does.",
		"owner", "site")
	workersDesc = gauge("corral_workers", "Connected workers, by cluster.", "owner", "cluster")
	cpusDesc    = gauge("corral_worker_cpus", "CPUs of connected workers, by cluster, busy and free.",
		"owner", "cluster", "use")
)

// A scrape holds the data that one view of the store has provided so far.
type scrape struct {
	*sender
	from   Sources
	now    time.Time
	sites  []corral.Site
	owners map[string]bool // owners of sites and clusters, for whom all series exist, with value 0
}

// A part of the metrics is read and sent separately, so its failure does not affect the others. Names of sites and
// clusters are unique only per owner, so each of their series has an owner label.
type part struct {
	name string
	send func(*store.WholeTx, *scrape) error
}

// parts are the stored metrics. The first two find the sites and the owners, which the other parts need.
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

// tasks sends the numbers of tasks in unfinished runs, and of ended tasks.
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
	for _, o := range ended { // of all owners who ever had a run
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

// sum adds up task counts.
func sum(a, b corral.RunTasks) corral.RunTasks {
	return corral.RunTasks{Total: a.Total + b.Total, Waiting: a.Waiting + b.Waiting, Ready: a.Ready + b.Ready,
		Running: a.Running + b.Running, Done: a.Done + b.Done, Failed: a.Failed + b.Failed,
		Skipped: a.Skipped + b.Skipped}
}

// crowd counts the workers connected to a cluster.
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

// bySite sends the number of each site's objects in each state, by the site's id, because names are unique only per
// owner.
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

// byOwner sends the number of each owner's objects in each state. An owner without objects also has all series, with
// value 0: a rate over a series that appears with its first object would miss that object.
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

// last reports whether a state is final; objects in such a state are not counted.
func last[S ~string](state S) bool { return state == "DELETED" || state == "ENDED" }

// since returns the seconds since a time, or 0 for the zero time.
func (s *scrape) since(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, s.now.Sub(at).Seconds())
}

// expiry returns the expiry time of a credential in Prometheus's format, or +Inf if it never expires.
func expiry(at time.Time) float64 {
	if at.IsZero() {
		return math.Inf(1)
	}
	return float64(at.Unix())
}

// truth returns 1 for true and 0 for false.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
