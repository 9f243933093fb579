package corral

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/resubmit"
)

// SiteID identifies a site, also after its end; its name is free again once it is deleted.
type SiteID int64

// A SiteState says what may be asked of a site.
type SiteState string

const (
	SiteNew      SiteState = "NEW"      // recorded; the engine stages it next
	SiteStaging  SiteState = "STAGING"  // the setup job is on its way; the engine moves it on
	SiteReady    SiteState = "READY"    // pilots may be submitted
	SiteExiting  SiteState = "EXITING"  // to be removed; waits for its glideins to go
	SiteRemoving SiteState = "REMOVING" // the cleanup job is on its way
	SiteDeleted  SiteState = "DELETED"  // tombstone
	SiteFailed   SiteState = "FAILED"   // setup or cleanup failed; only remove helps
)

// SiteStates lists all states in their order of life.
var SiteStates = []SiteState{SiteNew, SiteStaging, SiteReady, SiteExiting, SiteRemoving, SiteDeleted, SiteFailed}

// A SiteMove names an event of a site's life.
type SiteMove string

const (
	SiteStage    SiteMove = "stage"
	SiteStaged   SiteMove = "staged"
	SiteFail     SiteMove = "fail"
	SiteRemove   SiteMove = "remove"
	SiteEmptied  SiteMove = "emptied"
	SiteUnstaged SiteMove = "unstaged"
	SiteForget   SiteMove = "forget"
)

// A Platform selects the worker package for a site.
type Platform struct {
	OS   string `json:"os"`   // linux
	Arch string `json:"arch"` // x86_64, aarch64: as uname -m says
	Libc string `json:"libc"` // glibc2.36, musl, none
}

// A Site is a place that can run batch jobs.
type Site struct {
	ID            SiteID    `json:"id"`
	Name          string    `json:"name"`
	Owner         string    `json:"owner"`
	Contact       string    `json:"contact"`    // how to reach it: local:, ssh://[user@]host[:port]
	Batch         string    `json:"batch"`      // what queues pilot jobs there: fork, slurm
	HeadBatch     string    `json:"head_batch"` // what runs setup and cleanup jobs, usually fork on the head node
	Root          string    `json:"root"`       // directory at the site that is ours alone
	Platform      Platform  `json:"platform"`
	Package       string    `json:"package,omitempty"`        // worker package installed there, by name
	PackageDigest string    `json:"package_digest,omitempty"` // sha256:HEX of its archive
	State         SiteState `json:"state"`
	Reason        string    `json:"reason,omitempty"` // why it is in State, one line
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`

	BatchOptions // of each pilot, unless its glidein says otherwise
	SiteTerms
	Limits       SiteLimits  `json:"limits"`
	Facts        *SiteFacts  `json:"facts,omitempty"`         // what a probe found; nil: none was made
	Trouble      SiteTrouble `json:"trouble,omitzero"`        // what keeps corrald from the site at present
	RelayTrouble string      `json:"relay_trouble,omitempty"` // why the relay for pilots there does not run
	Avoided      []BadNode   `json:"avoided_nodes,omitempty"` // by attempts of one host; those of many may avoid fewer

	// Credentials are those by which corrald is logged in there. They are read again for each answer about the site,
	// and never stored.
	Credentials []credential.Credential `json:"credentials,omitempty"`
}

// BatchOptions are passed to the batch system with a pilot's shape; the batch system defines their values.
type BatchOptions struct {
	Queue       string   `json:"queue,omitempty"` // Slurm: partition
	Account     string   `json:"account,omitempty"`
	QOS         string   `json:"qos,omitempty"`
	Constraint  string   `json:"constraint,omitempty"`
	SiteOptions []string `json:"site_options,omitempty"` // lines passed on verbatim
}

// SiteLimits bound Corral's use of a site, as set by an administrator; 0 means no limit.
type SiteLimits struct {
	MaxQueued  int `json:"max_queued,omitempty"`  // attempts that wait in the batch system
	MaxRunning int `json:"max_running,omitempty"` // attempts that wait or run: each that waits may start at any time
}

// SiteTerms state a site's prices and how much may be spent there, in the notation of package cost.
type SiteTerms struct {
	Price   string `json:"price,omitempty"`   // AMOUNT/PER, such as 0.04USD/cpu-hour; empty: 1ch/cpu-hour
	Billing string `json:"billing,omitempty"` // 1h, 1m, 1s, 10m-minimum; empty: the time that is held

	// Allocation is the amount that all pilots there may cost, those of the past included; empty: it is not limited.
	Allocation string `json:"allocation,omitempty"`
}

// SiteTrouble describes why corrald cannot use a site. Pilots there continue; nothing fails because of it.
type SiteTrouble struct {
	LoginNeeded bool      `json:"login_needed,omitempty"` // a person must log in: corral site login
	Why         string    `json:"why"`
	Since       time.Time `json:"since"`
}

// InShort names the trouble where the reason has no room; empty: there is none.
func (t SiteTrouble) InShort() string {
	switch {
	case t.LoginNeeded:
		return "login needed"
	case t.Why != "":
		return "unreachable"
	}
	return ""
}

// Lack returns the site's trouble as the reason for which the next attempts wait, in words for people.
func (s Site) Lack() Lack {
	switch {
	case s.Trouble.Why == "":
		return Lack{}
	case s.Trouble.LoginNeeded:
		return Lack{Why: fmt.Sprintf("site %s needs a login (corral site login %s): %s", s.Name, s.Name, s.Trouble.Why)}
	}
	return Lack{Why: fmt.Sprintf("site %s is unreachable: %s", s.Name, s.Trouble.Why)}
}

// Install sets the package that the site's pilots are to have, and the platform that it is for.
func (s *Site) Install(platform Platform, name, digest string) {
	s.Platform, s.Package, s.PackageDigest = platform, name, digest
}

// SiteFacts are the findings of a probe at a site.
type SiteFacts struct {
	At        time.Time   `json:"at"`
	Batch     string      `json:"batch"` // with its version: slurm 22.05.8
	Queues    []SiteQueue `json:"queues,omitempty"`
	MaxJobs   int         `json:"max_jobs,omitempty"`   // of one user, running; 0: no limit is known
	MaxSubmit int         `json:"max_submit,omitempty"` // of one user, queued and running; 0: no limit is known
	Outbound  *bool       `json:"outbound,omitempty"`   // nodes reach corrald's worker port; nil: not measured
	Shared    *bool       `json:"shared,omitempty"`     // worker nodes see the site's root; nil: not measured
	Node      string      `json:"node,omitempty"`       // whose C library and view were looked at; empty: none's
	FreeMiB   int64       `json:"free_mib"`             // that may be written at the root; -1: not known
	QuotaMiB  int64       `json:"quota_mib,omitempty"`  // what a quota still allows; 0: none is known
	Notes     []string    `json:"notes,omitempty"`      // what could not be found out, and why

	Maintenance []Maintenance `json:"maintenance,omitempty"` // that is planned or goes on
	Allowance   *Allowance    `json:"allowance,omitempty"`   // of the account; nil: not limited, or not known
}

// A Maintenance is a time at which some nodes of a queue run no jobs.
type Maintenance struct {
	Name  string    `json:"name"`
	Queue string    `json:"queue"`
	Nodes int       `json:"nodes"` // of the queue
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
}

// An Allowance is the total that the batch system lets an account use, and the use so far by all its users.
type Allowance struct {
	Account    string `json:"account"`
	CPUMinutes int64  `json:"cpu_minutes"`
	Used       int64  `json:"used_cpu_minutes"`
}

// Left is how many cpu-minutes may still be used.
func (a Allowance) Left() int64 { return max(0, a.CPUMinutes-a.Used) }

// SiteQueue
// SiteQueue is one of a batch system's queues, with its limits; 0 is none that is known.
type SiteQueue struct {
	Name        string  `json:"name"`
	Default     bool    `json:"default,omitempty"`
	Closed      string  `json:"closed,omitempty"` // why no job of the user may start there; empty: no reason is known
	MaxWalltime Seconds `json:"max_walltime_s,omitempty"`
	MaxNodes    int     `json:"max_nodes,omitempty"` // of one job
	Nodes       int     `json:"nodes,omitempty"`
	CPUs        int     `json:"cpus,omitempty"`       // of its largest node
	MemoryMiB   int     `json:"memory_mib,omitempty"` // of its largest node
	GPUs        int     `json:"gpus,omitempty"`       // of its largest node

	// CPUMemoryMiB is the memory of each cpu unless a job asks for more or less; any of the queue's nodes has it.
	CPUMemoryMiB int `json:"cpu_memory_mib,omitempty"`
}

// In returns what was found out of a queue, the default one if none is named. known is false if nothing was.
func (f *SiteFacts) In(queue string) (q SiteQueue, known bool) {
	if f != nil {
		for _, q := range f.Queues {
			if q.Name == queue || queue == "" && q.Default {
				return q, true
			}
		}
	}
	return q, false
}

// Terminal reports whether no event can move a site out of s.
func (s SiteState) Terminal() bool { return s == SiteDeleted }

// Closed reports whether the site will never again take a pilot.
func (s SiteState) Closed() bool {
	return !slices.Contains([]SiteState{SiteNew, SiteStaging, SiteReady}, s)
}

// Apply moves the site by one event; no other code sets State. Its glideins that are not over must be settled after it.
func (s Site) Apply(move SiteMove, reason string, now time.Time) (Site, []Entry, error) {
	from := s.State
	next, err := SiteMoves.Next(from, move)
	if err != nil {
		return s, nil, ErrorAt(Conflict, "site "+s.Name, "%w", err)
	}
	s.State, s.Reason, s.UpdatedAt = next, reason, latest(now, s.UpdatedAt)
	if next == SiteDeleted { // there is nothing left to be reached
		s.Trouble, s.RelayTrouble = SiteTrouble{}, ""
	}
	return s, []Entry{{Object: ObjectSite, Of: int64(s.ID), Event: string(move),
		From: string(from), To: string(next), Reason: reason}}, nil
}

// Explain has a site that is being set up or cleaned up say why the job that does it waits, and stop saying so once the
// job no longer waits; ok is false if there is nothing new to say. The history has no line of it, because the reasons
// change all day.
func (s Site) Explain(j Job, now time.Time) (_ Site, ok bool) {
	waits := fmt.Sprintf("its %s job waits: ", j.Kind)
	switch {
	case j.Kind == PilotJob, j.Package != "", s.State != SiteStaging && s.State != SiteRemoving:
		return s, false
	case j.State == JobQueued && j.Reason != "":
		s.Reason = waits + j.Reason
	case strings.HasPrefix(s.Reason, waits):
		s.Reason = fmt.Sprintf("its %s job is %s", j.Kind, j.State)
	default:
		return s, false
	}
	s.UpdatedAt = latest(now, s.UpdatedAt)
	return s, true
}

// NewGlidein returns g as it is recorded when it is requested at the site, for a cluster: with its defaults, and NEW.
// The caller sets its ID. A Conflict error if the cluster is not READY or the site will never again
// take a pilot; an Invalid one if the resubmission makes no sense.
func (s Site) NewGlidein(c Cluster, g Glidein, now time.Time) (Glidein, error) {
	if s.State.Closed() {
		return g, Errorf(Conflict, "site %s is %s", s.Name, s.State)
	}
	if err := c.Takes(); err != nil {
		return g, err
	}
	if err := g.Resubmit.Validate(); err != nil {
		return g, ErrorAt(Invalid, "resubmit", "%w", err)
	}
	g.Resubmit.Mode = cmp.Or(g.Resubmit.Mode, resubmit.Never)
	g.QueueLimit = cmp.Or(g.QueueLimit, DefaultQueueTimeout)
	g.Site, g.SiteName, g.Cluster, g.ClusterName = s.ID, s.Name, c.ID, c.Name
	g.Asked, g.State, g.Reason, g.CreatedAt, g.UpdatedAt = AskNothing, GlideinNew, "", now, now
	g.Attempts, g.EarlierExpired, g.WorkersNow, g.CPUsNow, g.Unreachable = nil, 0, 0, 0, nil
	return g, nil
}

// NewAttempt returns j as the recorded intent of another attempt of g, whose attempts may be in brief, at a site with
// this load. The attempt counts from then on until it has ENDED: its row is the reservation. A Conflict error if the
// site is DELETED, if the glidein was asked to go or is over (that may have happened since the caller decided), or if
// the attempt would exceed a limit of the site.
func (s Site) NewAttempt(g Glidein, load Load, j Job, now time.Time) (Job, error) {
	full := s.Full(load)
	switch {
	case s.State.Terminal():
		return j, Errorf(Conflict, "site %s is %s", s.Name, s.State)
	case g.Asked != AskNothing:
		return j, Errorf(Conflict, "glidein %d was asked to %s", g.ID, g.Asked)
	case g.State.Terminal():
		return j, Errorf(Conflict, "glidein %d is %s", g.ID, g.State)
	case full != "":
		return j, Errorf(Conflict, "%s", full)
	}
	j.Queue = cmp.Or(g.Queue, s.Queue)
	return j.intended(g.Attempts, now), nil
}

// NewSiteJob returns j as the recorded intent of another setup or cleanup job; earlier are all jobs of those kinds that
// the site has had. A Conflict error if the site is DELETED, or if one of the same kind is still alive.
func (s Site) NewSiteJob(earlier []Job, j Job, now time.Time) (Job, error) {
	if s.State.Terminal() {
		return j, Errorf(Conflict, "site %s is %s", s.Name, s.State)
	}
	for _, e := range earlier {
		if e.Kind == j.Kind && e.Live() {
			return j, Errorf(Conflict, "%s is still %s", e.Name(), e.State)
		}
	}
	return j.intended(earlier, now), nil
}
