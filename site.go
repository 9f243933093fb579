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

// SiteID identifies a site, even after the site is deleted. The name of a deleted site may be used again.
type SiteID int64

// A SiteState determines which requests a site accepts.
type SiteState string

const (
	SiteNew      SiteState = "NEW"      // recorded; the engine stages it next
	SiteStaging  SiteState = "STAGING"  // the setup job is in progress
	SiteReady    SiteState = "READY"    // pilots may be submitted
	SiteExiting  SiteState = "EXITING"  // to be removed; its glideins are ending
	SiteRemoving SiteState = "REMOVING" // the cleanup job is in progress
	SiteDeleted  SiteState = "DELETED"  // tombstone
	SiteFailed   SiteState = "FAILED"   // setup or cleanup failed; it can only be removed
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
	Arch string `json:"arch"` // x86_64, aarch64: as reported by uname -m
	Libc string `json:"libc"` // glibc2.36, musl, none
}

// A Site is a place that can run batch jobs.
type Site struct {
	ID            SiteID    `json:"id"`
	Name          string    `json:"name"`
	Owner         string    `json:"owner"`
	Contact       string    `json:"contact"`    // its address: local:, ssh://[user@]host[:port]
	Batch         string    `json:"batch"`      // batch system of pilot jobs: fork, slurm
	HeadBatch     string    `json:"head_batch"` // batch system of setup and cleanup jobs, usually fork on the head node
	Root          string    `json:"root"`       // directory at the site for Corral alone
	Platform      Platform  `json:"platform"`
	Package       string    `json:"package,omitempty"`        // name of the worker package installed there
	PackageDigest string    `json:"package_digest,omitempty"` // sha256:HEX of its archive
	State         SiteState `json:"state"`
	Reason        string    `json:"reason,omitempty"` // why it is in State, one line
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`

	BatchOptions // of each pilot, unless its glidein specifies others
	SiteTerms
	Limits       SiteLimits  `json:"limits"`
	Facts        *SiteFacts  `json:"facts,omitempty"`         // findings of a probe; nil: not probed
	Trouble      SiteTrouble `json:"trouble,omitzero"`        // why corrald cannot use the site now
	RelayTrouble string      `json:"relay_trouble,omitempty"` // why the relay for its pilots does not run
	Avoided      []BadNode   `json:"avoided_nodes,omitempty"` // by attempts of one host; larger attempts avoid fewer

	// Credentials are the credentials with which corrald is logged in at the site. They are read again for each answer
	// about the site and never stored.
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

// SiteLimits are an administrator's limits on Corral's use of a site; 0 means no limit.
type SiteLimits struct {
	MaxQueued  int `json:"max_queued,omitempty"`  // attempts that wait in the batch system
	MaxRunning int `json:"max_running,omitempty"` // attempts that wait or run: a waiting one may start at any time
}

// SiteTerms state a site's prices and spending limit, in the notation of package cost.
type SiteTerms struct {
	Price   string `json:"price,omitempty"`   // AMOUNT/PER, such as 0.04USD/cpu-hour; empty: see Terms
	Billing string `json:"billing,omitempty"` // 1h, 1m, 1s, 10m-minimum; empty: the actual time

	// Allocation is the maximum total cost of all pilots there, including past ones; empty: unlimited.
	Allocation string `json:"allocation,omitempty"`
}

// SiteTrouble describes why corrald cannot use a site. Pilots at the site continue; no attempt fails because of the
// trouble.
type SiteTrouble struct {
	LoginNeeded bool      `json:"login_needed,omitempty"` // a person must log in: corral site login
	Why         string    `json:"why"`
	Since       time.Time `json:"since"`
}

// InShort returns a short name of the trouble, for places where the full reason does not fit, or "" if there is no
// trouble.
func (t SiteTrouble) InShort() string {
	switch {
	case t.LoginNeeded:
		return "login needed"
	case t.Why != "":
		return "unreachable"
	}
	return ""
}

// Lack returns the site's trouble as the reason why the next attempts wait, for people.
func (s Site) Lack() Lack {
	switch {
	case s.Trouble.Why == "":
		return Lack{}
	case s.Trouble.LoginNeeded:
		return Lack{Why: fmt.Sprintf("site %s needs a login (corral site login %s): %s", s.Name, s.Name, s.Trouble.Why)}
	}
	return Lack{Why: fmt.Sprintf("site %s is unreachable: %s", s.Name, s.Trouble.Why)}
}

// Install sets the package for the site's pilots, and that package's platform.
func (s *Site) Install(platform Platform, name, digest string) {
	s.Platform, s.Package, s.PackageDigest = platform, name, digest
}

// SiteFacts are the results of a probe of a site.
type SiteFacts struct {
	At        time.Time   `json:"at"`
	Batch     string      `json:"batch"` // with its version: slurm 22.05.8
	Queues    []SiteQueue `json:"queues,omitempty"`
	MaxJobs   int         `json:"max_jobs,omitempty"`   // running jobs of one user; 0: no known limit
	MaxSubmit int         `json:"max_submit,omitempty"` // queued and running jobs of one user; 0: no known limit
	Outbound  *bool       `json:"outbound,omitempty"`   // nodes can reach corrald's worker port; nil: not measured
	Shared    *bool       `json:"shared,omitempty"`     // worker nodes see the site's root; nil: not measured
	Node      string      `json:"node,omitempty"`       // the node whose C library and view were examined; empty: none
	FreeMiB   int64       `json:"free_mib"`             // free space at the root; -1: unknown
	QuotaMiB  int64       `json:"quota_mib,omitempty"`  // space left under a quota; 0: no known quota
	Notes     []string    `json:"notes,omitempty"`      // facts that could not be found, with reasons

	Maintenance []Maintenance `json:"maintenance,omitempty"` // planned or in progress
	Allowance   *Allowance    `json:"allowance,omitempty"`   // of the account; nil: unlimited or unknown
	// Price is the price by the batch system's billing weights, with which a site without a price charges; empty: there
	// are no weights, or they are not known.
	Price string `json:"price,omitempty"`
}

// A Maintenance is a period in which some nodes of a queue run no jobs.
type Maintenance struct {
	Name  string    `json:"name"`
	Queue string    `json:"queue"`
	Nodes int       `json:"nodes"` // affected nodes of the queue
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
}

// An Allowance is the total usage that the batch system permits to an account, and the usage so far by all users of the
// account.
type Allowance struct {
	Account    string `json:"account"`
	CPUMinutes int64  `json:"cpu_minutes"`
	Used       int64  `json:"used_cpu_minutes"`
}

// Left returns the cpu-minutes that remain.
func (a Allowance) Left() int64 { return max(0, a.CPUMinutes-a.Used) }

// SiteQueue is one of a batch system's queues, with its limits; a limit of 0 means that none is known.
type SiteQueue struct {
	Name        string  `json:"name"`
	Default     bool    `json:"default,omitempty"`
	Closed      string  `json:"closed,omitempty"` // why no job of the user may start there; empty: no known reason
	MaxWalltime Seconds `json:"max_walltime_s,omitempty"`
	MaxNodes    int     `json:"max_nodes,omitempty"` // of one job
	Nodes       int     `json:"nodes,omitempty"`
	CPUs        int     `json:"cpus,omitempty"`       // of its largest node
	MemoryMiB   int     `json:"memory_mib,omitempty"` // of its largest node
	GPUs        int     `json:"gpus,omitempty"`       // of its largest node

	// CPUMemoryMiB is the memory per cpu unless a job requests another amount; every node of the queue has at least
	// this much memory per cpu.
	CPUMemoryMiB int `json:"cpu_memory_mib,omitempty"`

	NodeTypes []NodeType `json:"node_types,omitempty"` // of all its nodes; empty: not known
}

// A NodeType is a number of equal nodes. Memory or a disk of 0 is not known.
type NodeType struct {
	Count int `json:"count"`
	Resources
	Whole bool `json:"whole,omitempty"` // each job gets whole nodes, whatever it requests
}

// Terms returns the terms with which the site charges: if it has no price, that of its batch system applies.
func (s Site) Terms() SiteTerms {
	terms := s.SiteTerms
	if terms.Price == "" && s.Facts != nil {
		terms.Price = s.Facts.Price
	}
	return terms
}

// Types returns the queue's nodes by type, with Unlimited for what is not known of them.
func (q SiteQueue) Types() []NodeType {
	all := slices.Clone(q.NodeTypes)
	for i := range all {
		t := &all[i]
		t.MemoryMiB, t.DiskMiB = cmp.Or(t.MemoryMiB, Unlimited), cmp.Or(t.DiskMiB, Unlimited)
	}
	return all
}

// In returns the facts about a queue, or about the default queue if none is named. known is false if the queue has no
// facts.
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

// Closed reports whether the site will never again accept a pilot.
func (s SiteState) Closed() bool {
	return !slices.Contains([]SiteState{SiteNew, SiteStaging, SiteReady}, s)
}

// Apply changes the site's state by one event; no other code sets State. The caller must settle its unfinished
// glideins.
func (s Site) Apply(move SiteMove, reason string, now time.Time) (Site, []Entry, error) {
	from := s.State
	next, err := SiteMoves.Next(from, move)
	if err != nil {
		return s, nil, ErrorAt(Conflict, "site "+s.Name, "%w", err)
	}
	s.State, s.Reason, s.UpdatedAt = next, reason, latest(now, s.UpdatedAt)
	if next == SiteDeleted { // nothing is left to reach
		s.Trouble, s.RelayTrouble = SiteTrouble{}, ""
	}
	return s, []Entry{{Object: ObjectSite, Of: int64(s.ID), Event: string(move),
		From: string(from), To: string(next), Reason: reason}}, nil
}

// Explain sets the reason of a site that is being set up or cleaned up to an explanation of why its job waits, and
// clears that reason once the job no longer waits; ok is false if nothing changed. It returns no history entry, because
// such reasons change often.
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

// NewGlidein returns g with defaults set, in state NEW, as recorded for a request at the site for a cluster. The caller
// sets its ID. It returns a Conflict error if the cluster is not READY or the site will never again accept a pilot, and
// an Invalid error if the resubmission policy is not valid.
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
// the given load. The attempt counts until it has ENDED: its row is the reservation. NewAttempt returns a Conflict
// error if the site is DELETED, if the glidein has been asked to end or is over (either may have happened since the
// caller decided), or if the attempt would exceed a limit of the site.
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

// NewSiteJob returns j as the recorded intent of another setup or cleanup job; earlier are all such jobs of the site.
// It returns a Conflict error if the site is DELETED, or if a job of the same kind is still alive.
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
