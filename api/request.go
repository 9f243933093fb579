package api

import (
	"encoding/json"
	"time"

	"github.com/corral-pilot/corral"
)

// KeyHeader is the header with the idempotency key of a change. Keys are kept for 30 days; the same key with another
// request is refused as corral.KeyReused. CheckKey defines the valid keys.
const KeyHeader = "Idempotency-Key"

// Limits of the contract.
const (
	MaxBody        = 1 << 20   // bytes of a request's body
	MaxRunBody     = 256 << 20 // bytes of a request that creates a run, including the workflow
	MaxProfileBody = 64 << 20  // bytes of a request that saves a profile, including its sources
	MaxKey         = 200       // bytes of an idempotency key
	MaxPage        = 1000      // items on a page, and the maximum of ?limit=
	MaxTasks       = 10_000    // the same for a run's tasks: each page reads the whole journal
	MaxWait        = time.Minute
)

// A List is one page of a list. Next, unless empty, is the value of ?after= for the next page.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// NewSite requests a site. Its batch options are the defaults of the site's glideins.
type NewSite struct {
	Name      string `json:"name"`
	Contact   string `json:"contact"`              // local:, ssh://[user@]host[:port]
	Batch     string `json:"batch"`                // batch system of pilot jobs: fork, slurm
	HeadBatch string `json:"head_batch,omitempty"` // batch system of setup and cleanup jobs; empty: fork

	// Root is absolute, or $VARIABLE/… at a site reached by ssh; empty: corrald chooses.
	Root string `json:"root,omitempty"`

	// MaxQueued limits the attempts that wait in the batch system, and MaxRunning the attempts that wait or run; 0: no
	// limit.
	MaxQueued  int `json:"max_queued,omitempty"`
	MaxRunning int `json:"max_running,omitempty"`

	AcceptHostKey       bool `json:"accept_host_key,omitempty"` // trust the key that a host shows first
	corral.SiteTerms    `yaml:",inline"`
	corral.BatchOptions `yaml:",inline"`
}

// SetSite changes settings of a site. A nil field is not changed.
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

// NewLogin begins a login at a site, or at a contact without a site, or continues a login.
type NewLogin struct {
	Site          string   `json:"site,omitempty"` // name or id
	Contact       string   `json:"contact,omitempty"`
	AcceptHostKey bool     `json:"accept_host_key,omitempty"` // of an unknown host
	Session       string   `json:"session,omitempty"`         // of the answered question
	Answers       []string `json:"answers,omitempty"`         // one for each of its prompts
	Cancel        bool     `json:"cancel,omitempty"`          // end the login instead of answering
}

// A Login is the state of a login: it needs answers, or it is done.
type Login struct {
	Session  string         `json:"session,omitempty"` // for the answer to the question
	Question *LoginQuestion `json:"question,omitempty"`
	Done     bool           `json:"done"`
}

// A LoginQuestion is a question to a person from the site or about an encrypted key.
type LoginQuestion struct {
	Name        string        `json:"name"`        // source of the question
	Instruction string        `json:"instruction"` // may be empty, or have several lines
	Prompts     []LoginPrompt `json:"prompts"`
}

// A LoginPrompt is one line to be answered.
type LoginPrompt struct {
	Text string `json:"text"`
	Echo bool   `json:"echo"` // the answer is not secret
}

// NewForgiveness requests that past failures on nodes of a site be ignored.
type NewForgiveness struct {
	Nodes []string `json:"nodes,omitempty"` // by name, with or without domain; none: all
}

// NewProbe requests a probe of a site and, if Network is set, a probe of the network path to its workers.
type NewProbe struct {
	Network bool `json:"network,omitempty"`

	// Cluster is the condor cluster whose pool would reach the workers, by name or id; empty: default.
	Cluster string `json:"cluster,omitempty"`
}

// A Probe is the result of probing a site.
type Probe struct {
	Site     string               `json:"site"`
	Platform corral.Platform      `json:"platform"` // of its head node, once the site is set up
	Facts    corral.SiteFacts     `json:"facts"`
	Network  *corral.NetworkProbe `json:"network,omitempty"`
}

// NewGlidein requests a pilot of a shape at a site.
type NewGlidein struct {
	Site    string `json:"site"`              // name or id
	Cluster string `json:"cluster,omitempty"` // name or id; empty: default
	corral.Shape
	Idle      corral.Seconds `json:"idle_s,omitempty"`     // leave after this time without work; 0: never
	MinStay   corral.Seconds `json:"min_stay_s,omitempty"` // but not before an attempt has run this long
	NotBefore time.Time      `json:"not_before,omitzero"`

	// QueueLimit is the time for which an attempt may wait in the site's queue before it is cancelled; 0: a week.
	QueueLimit corral.Seconds `json:"queue_timeout_s,omitempty"`

	Labels map[string]string `json:"labels,omitempty"`
	Resubmission
	PoolOptions
	corral.BatchOptions
}

// Resubmission specifies when an attempt of a glidein is followed by another attempt.
type Resubmission struct {
	Resubmit string         `json:"resubmit,omitempty"`  // never, N, until=TIME, forever; empty: never
	Retries  int            `json:"retries,omitempty"`   // for consecutive attempts lost or failed transiently
	Overlap  corral.Seconds `json:"overlap_s,omitempty"` // the next attempt runs this long before the last one leaves
}

// PoolOptions specify how workers join the pool of a condor cluster; other clusters ignore them.
type PoolOptions struct {
	Broker corral.BrokerMode `json:"broker,omitempty"` // empty: auto
	CCB    []string          `json:"ccb,omitempty"`    // brokers, HOST:PORT; none: the pool's collector
	Slots  corral.SlotMode   `json:"slots,omitempty"`  // empty: partitionable
}

// NewCluster requests a personal cluster. The fields after Kind apply to condor clusters only.
type NewCluster struct {
	Name string             `json:"name"`
	Kind corral.ClusterKind `json:"kind"`

	// HTCondor is the source of the cluster's pool and tools: the name of a package, or an absolute folder; empty: the
	// newest available version.
	HTCondor string `json:"htcondor,omitempty"`

	// Address is the listening address of a pool run by corrald, IP or IP:PORT; empty: corrald chooses.
	Address string `json:"address,omitempty"`

	// Collector is the address, HOST:PORT, of the collector of a pool run by someone else, to which Corral attaches.
	// Token is the text of an IDTOKEN for that pool, a secret. Schedd is the name of one of the pool's schedds; empty:
	// the only schedd. If the pool has several schedds and Schedd is empty, the cluster is FAILED.
	Collector string `json:"collector,omitempty"`
	Token     string `json:"token,omitempty"`
	Schedd    string `json:"schedd,omitempty"`
}

// StartCluster requests the start or restart of a cluster.
type StartCluster struct {
	HTCondor string `json:"htcondor,omitempty"` // version to use from now on; empty: the same as before
	Newest   bool   `json:"newest,omitempty"`   // use the newest available version from now on
}

// An Env is the environment that a program needs to use a cluster.
type Env struct {
	Variables []Variable `json:"variables"`
	Path      []string   `json:"path"` // folders to put first in PATH
}

// A Variable is one variable of an environment.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// NewPackage requests the import of an archive.
type NewPackage struct {
	// Source is an absolute path on corrald's host, or a URL with http, https, ftp, sftp or file.
	Source string `json:"source"`

	// Signature is the content of the signature file; absent: that file is beside the archive.
	Signature json.RawMessage `json:"signature,omitempty"`

	Sign bool `json:"sign,omitempty"` // corrald signs a local archive with its own key
}

// NewMirror requests the addition of a mirror.
type NewMirror struct {
	Name string `json:"name"`
	URL  string `json:"url"` // of its directory: http, https, ftp, sftp or file
}

// NewRun requests a run of a workflow on a cluster. Paths are absolute, on corrald's host.
type NewRun struct {
	Cluster      string            `json:"cluster,omitempty"`  // name or id; empty: default
	Workflow     json.RawMessage   `json:"workflow,omitempty"` // a WfFormat document; absent for an open run
	WorkflowName string            `json:"workflow_name"`      // its file name, for messages about the document
	SourceDir    string            `json:"source_dir"`         // folder with the workflow's own inputs
	Dir          string            `json:"dir,omitempty"`      // of the run; empty: corrald chooses
	Options      corral.RunOptions `json:"options"`            // an absent or zero option has its default
	Labels       map[string]string `json:"labels,omitempty"`

	// DoneDir is the folder with the outputs of tasks that are marked as done; empty: SourceDir.
	DoneDir string `json:"done_dir,omitempty"`

	// Rescue is the .dag file from which the workflow was read. A run that does not succeed writes a rescue file beside
	// it.
	Rescue string `json:"rescue,omitempty"`

	// Changed reuses those results of the latest run of the same workflow file whose dependencies have not changed.
	Changed bool `json:"changed,omitempty"`

	// Open creates a run without workflow, to which tasks are added until it is closed. WorkflowName is its name.
	Open bool `json:"open,omitempty"`
}

// A TaskStatus is one task of a run. Worker, exit status and times are those of its last execution. While a worker
// holds the task, StartedAt is the time at which the worker received it, and EndedAt is zero.
type TaskStatus struct {
	ID         string           `json:"id"` // in the workflow
	State      corral.TaskState `json:"state"`
	Attempts   int              `json:"attempts"` // executions begun so far
	Worker     string           `json:"worker,omitempty"`
	ExitStatus *int             `json:"exit_status,omitempty"`
	Reason     string           `json:"reason,omitempty"` // why the last execution did not succeed
	Cause      string           `json:"cause,omitempty"`  // corral.CauseMemory and the like; usually none
	StartedAt  time.Time        `json:"started_at,omitzero"`
	EndedAt    time.Time        `json:"ended_at,omitzero"`

	ChangedInputs []string `json:"changed_inputs,omitempty"` // the first few files that it changed in place

	*Grown // nil: its run is not open
}

// Grown contains the additional fields of a task of an open run.
type Grown struct {
	Number     int               `json:"number"`            // from 1, in the order in which tasks were added
	Name       string            `json:"name,omitempty"`    // need not be unique
	Array      int               `json:"array,omitempty"`   // number of the first task of its array; 0: none
	Element    int               `json:"element,omitempty"` // its index in the array, from 0
	AddedAt    time.Time         `json:"added_at"`
	OverAt     time.Time         `json:"over_at,omitzero"` // when it was over, whether or not it ran
	Attributes map[string]string `json:"attributes,omitempty"`
}

// A TaskText is a TaskStatus with its times as strings, as corrald writes it: package json takes longer to encode a
// time.Time than all other fields of a task. Its fields hide those of TaskStatus.
type TaskText struct {
	*TaskStatus
	StartedAt string `json:"started_at,omitempty"`
	EndedAt   string `json:"ended_at,omitempty"`
	AddedAt   string `json:"added_at,omitempty"`
	OverAt    string `json:"over_at,omitempty"`
}

// TextOf returns t with its times as strings. The result refers to t.
func TextOf(t *TaskStatus) TaskText {
	text := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return at.Format(time.RFC3339Nano)
	}
	all := TaskText{TaskStatus: t, StartedAt: text(t.StartedAt), EndedAt: text(t.EndedAt)}
	if t.Grown != nil {
		all.AddedAt, all.OverAt = text(t.AddedAt), text(t.OverAt)
	}
	return all
}

// A TaskChoice names the tasks of a run to which a request applies.
type TaskChoice struct {
	Tasks []string `json:"tasks"` // by id
}

// Health is corrald's report on itself.
type Health struct {
	Status  string `json:"status"` // ok
	Version string `json:"version"`
	User    string `json:"user"` // user it runs as
}
