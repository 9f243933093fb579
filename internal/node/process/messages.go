package process

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// An Ask is a message from a supervisor to a worker or a worker's host: first its order, later a request to drain or to
// leave. The end of the stream also means that the receiver must leave: the supervisor has ended. A host receives
// periodic empty messages, which show that the supervisor is running.
type Ask struct {
	Order      *Order      `json:"order,omitempty"`
	Host       *HostOrder  `json:"host,omitempty"`
	Drain      bool        `json:"drain,omitempty"` // finish the running jobs, then leave
	Leave      bool        `json:"leave,omitempty"` // leave now
	CalledBack *CalledBack `json:"called_back,omitempty"`
}

// An Order is the complete configuration of a worker: the pilot's order, and the settings for this worker.
type Order struct {
	jobfiles.PilotOrder
	ID      string        `json:"id"`
	Tag     string        `json:"tag"`
	Holder  string        `json:"holder"`
	Secret  string        `json:"secret"`     // of the holder; it exists only in this message and in memory
	Host    string        `json:"host"`       // the batch system's name for the node, if any
	EndsIn  time.Duration `json:"ends_in_ns"` // a duration, because the clocks may differ
	Scratch string        `json:"scratch"`
	Place   int           `json:"place,omitempty"`  // among the workers on its machine, from 0
	Beside  int           `json:"beside,omitempty"` // the number of those workers; 0: there is no other
	Join    *Join         `json:"join,omitempty"`   // nil: serve corrald's own dispatcher
}

// A Join contains the settings for a worker of an HTCondor pool that are not in the pilot's order.
type Join struct {
	Secret  string        `json:"secret"`  // the pool's token
	Release string        `json:"release"` // HTCondor's folder
	Ports   [2]uint16     `json:"ports"`   // ports of this node at which it may be reached; zero: any
	Way     broker.Choice `json:"way"`     // how the pool reaches this node
}

// A HostOrder is the order for a worker on another node than the supervisor's.
type HostOrder struct {
	Order
	Dir       string            `json:"dir"`    // the job's directory; it must be visible on every node
	Linked    bool              `json:"linked"` // the supervisor can ask corrald to call back
	HungAfter time.Duration     `json:"hung_after_ns"`
	Env       map[string]string `json:"env"` // variables of the first node that tasks and daemons also need on this one
}

// A Word is a message from a worker to its supervisor; an empty word each second shows that the worker is running. If
// Left is set, it is the last word, with an Error if there was a fault. An Error without Left describes how the worker
// died; a restart may help.
type Word struct {
	Registered bool `json:"registered,omitempty"` // repeated after each registration
	// Idle is the time for which the worker has been idle, 0 if it has jobs. The worker sends it about every second
	// while it is idle and connected to its dispatcher.
	Idle  *time.Duration `json:"idle_ns,omitempty"`
	Left  attempt.Left   `json:"left,omitempty"`
	Error string         `json:"error,omitempty"`

	// Fields that only a host uses.
	Hello    *Hello    `json:"hello,omitempty"` // its first word
	Note     string    `json:"note,omitempty"`  // for the log
	CallBack *CallBack `json:"call_back,omitempty"`
}

// Last reports whether this is the last word.
func (w Word) Last() bool { return w.Left != "" || w.Error != "" }

// A Hello is the first word of a host.
type Hello struct {
	Now  time.Time `json:"now"` // by its clock
	Host string    `json:"host"`
	PID  int       `json:"pid"`
}

// A CallBack is a host's request to its supervisor that corrald dial the host's addresses.
type CallBack struct {
	Addresses []string `json:"addresses"`
	Nonce     string   `json:"nonce"`
}

// A CalledBack is corrald's answer to a CallBack.
type CalledBack struct {
	Nonce   string      `json:"nonce"`
	Reached string      `json:"reached,omitempty"`
	Kind    corral.Kind `json:"kind,omitempty"` // of the error, if there is one
	Reason  string      `json:"reason,omitempty"`
}
