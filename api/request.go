package api

import (
	"encoding/json"
	"time"

	"github.com/corral-pilot/corral"
)

// KeyHeader carries the idempotency key of a change. Keys are kept for 30 days; the same key with
// another request is refused as corral.KeyReused. CheckKey says what a key is.
const KeyHeader = "Idempotency-Key"

// Limits of the contract.
const (
	MaxBody        = 1 << 20   // bytes of a request's body
	MaxRunBody     = 256 << 20 // bytes of a request that creates a run: the workflow is in it
	MaxProfileBody = 64 << 20  // the same for one that saves a profile: its sources are in it
	MaxKey         = 200       // bytes of an idempotency key
	MaxPage        = 1000      // items on a page, and what ?limit= may ask for at most
	MaxTasks       = 10_000    // the same for tasks of a run: each page has the whole journal read
	MaxWait        = time.Minute
)

// A List is one page of a list. Next, unless empty, is the value of ?after= for the next page.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// NewSite asks for a site. Its batch options are those of each glidein that says nothing else.
type NewSite struct {
	Name      string `json:"name"`
	Contact   string `json:"contact"`              // local:, ssh://[user@]host[:port]
	Batch     string `json:"batch"`                // what queues pilots there: fork, slurm
	HeadBatch string `json:"head_batch,omitempty"` // what runs setup and cleanup jobs; empty: fork

	// Root is absolute, or $VARIABLE/… of a site that ssh reaches; empty: corrald chooses.
	Root string `json:"root,omitempty"`

	// MaxQueued and MaxRunning are how many attempts may wait in the batch system, or wait and run, at once; 0: no
	// limit.
	MaxQueued  int `json:"max_queued,omitempty"`
	MaxRunning int `json:"max_running,omitempty"`

	AcceptHostKey       bool `json:"accept_host_key,omitempty"` // trust the key that a host shows for the first time
	corral.SiteTerms    `yaml:",inline"`
	corral.BatchOptions `yaml:",inline"`
}

// SetSite changes what may be changed of a site. What is nil stays.
type SetSite struct {
	Queue       *string   `json:"queue,omitempty"`
	Account     *string   `json:"account,omitempty"`
	QOS         *string   `json:"qos,omitempty"`
	Constraint  *string   `json:"constraint,omitempty"`
	SiteOptions *[]string `json:"site_options,omitempty"`
	MaxQueued   *int      `json:"max_queued,omitempty"` // 0: no limit
	MaxRunning  *int      `json:"max_running,omitempty"`
	Price       *string   `json:"price,omitempty"` // empty: 1ch/cpu-hour
	Billing     *string   `json:"billing,omitempty"`
	Allocation  *string   `json:"allocation,omitempty"` // empty: not limited
}

// NewLogin begins a login at a site, or at a contact of which there is no site yet, or goes on with one.
type NewLogin struct {
	Site          string   `json:"site,omitempty"` // name or id
	Contact       string   `json:"contact,omitempty"`
	AcceptHostKey bool     `json:"accept_host_key,omitempty"` // of a host that is not known
	Session       string   `json:"session,omitempty"`         // of the question that is answered
	Answers       []string `json:"answers,omitempty"`         // one for each of its prompts
	Cancel        bool     `json:"cancel,omitempty"`          // instead of answering: end the login
}

// A Login is how far a login is: it wants answers, or it is done.
type Login struct {
	Session  string         `json:"session,omitempty"` // to answer the question with
	Question *LoginQuestion `json:"question,omitempty"`
	Done     bool           `json:"done"`
}

// A LoginQuestion is what the site, or an encrypted key, asks of a person.
type LoginQuestion struct {
	Name        string        `json:"name"`        // who asks
	Instruction string        `json:"instruction"` // may be empty, or have several lines
	Prompts     []LoginPrompt `json:"prompts"`
}

// A LoginPrompt is one line to be answered.
type LoginPrompt struct {
	Text string `json:"text"`
	Echo bool   `json:"echo"` // the answer is no secret
}

// NewForgiveness asks that what failed on nodes of a site counts no more.
type NewForgiveness struct {
	Nodes []string `json:"nodes,omitempty"` // by name, with domain or without; none: all
}

// NewProbe asks what a site is like, and with Network how its workers would be reached.
type NewProbe struct {
	Network bool `json:"network,omitempty"`

	// Cluster is the one whose pool would reach them, of kind condor, by name or id; empty: default.
	Cluster string `json:"cluster,omitempty"`
}

// A Probe is what was found out about a site.
type Probe struct {
	Site     string               `json:"site"`
	Platform corral.Platform      `json:"platform"` // of its head node, once it is set up
	Facts    corral.SiteFacts     `json:"facts"`
	Network  *corral.NetworkProbe `json:"network,omitempty"`
}

// NewGlidein asks for hosts × cpus at a site for a walltime.
type NewGlidein struct {
	Site      string         `json:"site"`              // name or id
	Cluster   string         `json:"cluster,omitempty"` // name or id; empty: default
	Hosts     int            `json:"hosts"`
	CPUs      int            `json:"cpus"`                 // of each host
	MemoryMiB int            `json:"memory_mib,omitempty"` // of each host; 0: machine × cpus ÷ the machine's cpus
	GPUs      int            `json:"gpus,omitempty"`       // of each host
	Walltime  corral.Seconds `json:"walltime_s"`
	Idle      corral.Seconds `json:"idle_s,omitempty"` // leave after so long without work; 0: never
	NotBefore time.Time      `json:"not_before,omitzero"`

	// QueueLimit is how long an attempt may wait in the site's queue before it is cancelled; 0: a week.
	QueueLimit corral.Seconds `json:"queue_timeout_s,omitempty"`

	Labels map[string]string `json:"labels,omitempty"`
	Resubmission
	PoolOptions
	corral.BatchOptions
}

// Resubmission says when attempts of a glidein follow one another.
type Resubmission struct {
	Resubmit string         `json:"resubmit,omitempty"`  // never, N, until=TIME, forever; empty: never
	Retries  int            `json:"retries,omitempty"`   // for attempts in a row that were lost or failed transiently
	Overlap  corral.Seconds `json:"overlap_s,omitempty"` // the next runs so long before the last one leaves
}

// PoolOptions say how workers join the pool of a cluster of kind condor; other clusters have no use for them.
type PoolOptions struct {
	Broker corral.BrokerMode `json:"broker,omitempty"` // empty: auto
	CCB    []string          `json:"ccb,omitempty"`    // brokers, HOST:PORT; none: the pool's collector
	Slots  corral.SlotMode   `json:"slots,omitempty"`  // empty: partitionable
}

// NewCluster asks for a personal cluster. What follows Kind is for kind condor only.
type NewCluster struct {
	Name string             `json:"name"`
	Kind corral.ClusterKind `json:"kind"`

	// HTCondor is what the cluster's pool and tools are made of: the name of a package, or an absolute folder; empty:
	// the newest there is.
	HTCondor string `json:"htcondor,omitempty"`

	// Address is where a pool that corrald runs listens, IP or IP:PORT; empty: corrald chooses.
	Address string `json:"address,omitempty"`

	// Collector, HOST:PORT, is that of a pool that somebody else runs; Corral attaches to it. Token is the text of an
	// IDTOKEN for that pool: a secret. Schedd is one of that pool, by name; empty: the only one there is, and if there
	// are several the cluster is FAILED.
	Collector string `json:"collector,omitempty"`
	Token     string `json:"token,omitempty"`
	Schedd    string `json:"schedd,omitempty"`
}

// StartCluster asks that a cluster is started, or started again.
type StartCluster struct {
	HTCondor string `json:"htcondor,omitempty"` // make it of this from now on; empty: of what it was made of
	Newest   bool   `json:"newest,omitempty"`   // make it of the newest there is from now on
}

// An Env is what a program's environment needs to use a cluster.
type Env struct {
	Variables []Variable `json:"variables"`
	Path      []string   `json:"path"` // folders that come first in PATH
}

// A Variable is one variable of an environment.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// NewPackage asks that an archive is imported.
type NewPackage struct {
	// Source is an absolute path on corrald's host, or a URL with http, https, ftp, sftp or file.
	Source string `json:"source"`

	// Signature is the content of the signature file; absent: that file is beside the archive.
	Signature json.RawMessage `json:"signature,omitempty"`

	Sign bool `json:"sign,omitempty"` // have corrald sign a local archive with its own key
}

// NewMirror tells of a mirror.
type NewMirror struct {
	Name string `json:"name"`
	URL  string `json:"url"` // of its directory: http, https, ftp, sftp or file
}

// NewRun asks for a run of a workflow on a cluster. Paths are absolute, on corrald's host.
type NewRun struct {
	Cluster      string            `json:"cluster,omitempty"`  // name or id; empty: default
	Workflow     json.RawMessage   `json:"workflow,omitempty"` // a WfFormat document; none of an open run
	WorkflowName string            `json:"workflow_name"`      // its file: messages about the document start with it
	SourceDir    string            `json:"source_dir"`         // the workflow's own inputs are in it
	Dir          string            `json:"dir,omitempty"`      // of the run; empty: corrald chooses
	Options      corral.RunOptions `json:"options"`            // an absent or zero option has its default
	Labels       map[string]string `json:"labels,omitempty"`

	// DoneDir is where the files are that tasks have made which are marked as done before; empty: in SourceDir.
	DoneDir string `json:"done_dir,omitempty"`

	// Rescue is the .dag that the workflow was read from: a run that does not succeed leaves a rescue file beside it.
	Rescue string `json:"rescue,omitempty"`

	// Changed keeps what the latest run of the same workflow file has made, where nothing that it rests on has changed.
	Changed bool `json:"changed,omitempty"`

	// Open has no workflow: tasks are added while the run goes on, until it is closed. WorkflowName is the run's name.
	Open bool `json:"open,omitempty"`
}

// A Task is one task of a run. Worker, exit status and times are those of its last execution. While a worker has the
// task, StartedAt is when it was given it, and EndedAt is zero.
type Task struct {
	ID         string           `json:"id"` // in the workflow
	State      corral.TaskState `json:"state"`
	Attempts   int              `json:"attempts"` // executions begun so far
	Worker     string           `json:"worker,omitempty"`
	ExitStatus *int             `json:"exit_status,omitempty"`
	Reason     string           `json:"reason,omitempty"` // why the last execution was not a success
	Cause      string           `json:"cause,omitempty"`  // corral.CauseMemory and the like; mostly none
	StartedAt  time.Time        `json:"started_at,omitzero"`
	EndedAt    time.Time        `json:"ended_at,omitzero"`

	ChangedInputs []string `json:"changed_inputs,omitempty"` // files that it has changed in place, a few of them

	*Grown // nil: its run is not an open one
}

// Grown is what else there is to say of a task of an open run.
type Grown struct {
	Number     int               `json:"number"`            // from 1, in the order in which tasks were added
	Name       string            `json:"name,omitempty"`    // need not be unique
	Array      int               `json:"array,omitempty"`   // number of the first task of its array; 0: it is in none
	Element    int               `json:"element,omitempty"` // which element of the array it is, from 0
	AddedAt    time.Time         `json:"added_at"`
	OverAt     time.Time         `json:"over_at,omitzero"` // when it was over, whether or not it has run
	Attributes map[string]string `json:"attributes,omitempty"`
}

// A TaskText is a Task as corrald writes it, whose times are texts already: to encode a time.Time takes package json
// longer than all other fields of a task. Its fields hide the task's.
type TaskText struct {
	*Task
	StartedAt string `json:"started_at,omitempty"`
	EndedAt   string `json:"ended_at,omitempty"`
	AddedAt   string `json:"added_at,omitempty"`
	OverAt    string `json:"over_at,omitempty"`
}

// TextOf returns the text of a task, which keeps using t.
func TextOf(t *Task) TaskText {
	text := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return at.Format(time.RFC3339Nano)
	}
	all := TaskText{Task: t, StartedAt: text(t.StartedAt), EndedAt: text(t.EndedAt)}
	if t.Grown != nil {
		all.AddedAt, all.OverAt = text(t.AddedAt), text(t.OverAt)
	}
	return all
}

// A TaskChoice names tasks of a run of which something is asked.
type TaskChoice struct {
	Tasks []string `json:"tasks"` // by id
}

// Health is what corrald says of itself.
type Health struct {
	Status  string `json:"status"` // ok
	Version string `json:"version"`
	User    string `json:"user"` // as whom it runs
}
