package process

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// An Ask is what a supervisor tells a worker, or a worker's host: first its order, later to drain or to leave. The end
// of the stream also means leave: the supervisor is gone. A host hears an empty ask now and then, which shows it that
// the supervisor is there.
type Ask struct {
	Order      *Order      `json:"order,omitempty"`
	Host       *HostOrder  `json:"host,omitempty"`
	Drain      bool        `json:"drain,omitempty"` // finish what runs, then leave
	Leave      bool        `json:"leave,omitempty"` // leave now
	CalledBack *CalledBack `json:"called_back,omitempty"`
}

// An Order is all that a worker needs to know: the pilot's order, and its own part.
type Order struct {
	jobfiles.Pilot
	ID      string        `json:"id"`
	Tag     string        `json:"tag"`
	Holder  string        `json:"holder"`
	Secret  string        `json:"secret"`     // of the holder; it is nowhere but in this message and in memory
	Host    string        `json:"host"`       // the batch system's name of the node, if it has one
	EndsIn  time.Duration `json:"ends_in_ns"` // a duration, because the two may not agree on the time
	Scratch string        `json:"scratch"`
	Place   int           `json:"place,omitempty"`  // among the workers on its machine, from 0
	Beside  int           `json:"beside,omitempty"` // how many those are; 0: it is alone there
	Join    *Join         `json:"join,omitempty"`   // nil: serve corrald's own dispatcher
}

// A Join is what a worker of an HTCondor pool needs to know beside what the pilot's order says of the pool.
type Join struct {
	Secret  string        `json:"secret"`  // the pool's token
	Release string        `json:"release"` // HTCondor's folder
	Ports   [2]uint16     `json:"ports"`   // of this node at which others may connect; zero: any
	Way     broker.Choice `json:"way"`     // how the pool reaches this node
}

// A HostOrder is a worker's order on another node than the supervisor's.
type HostOrder struct {
	Order
	Dir       string            `json:"dir"`    // of the job; every node must see it
	Linked    bool              `json:"linked"` // the supervisor can ask corrald to call back
	HungAfter time.Duration     `json:"hung_after_ns"`
	Env       map[string]string `json:"env"` // variables of the first node that tasks and daemons need here too
}

// A Word is what a worker tells its supervisor; it says an empty one each second to show that it runs. Left makes it
// the last word, with an Error if something was wrong. An Error without Left is how the worker died; another start may
// do better.
type Word struct {
	Registered bool `json:"registered,omitempty"` // again, if it was before
	// Idle is how long the worker has had nothing to do, 0 when it has something. The worker says it about every second
	// while it is idle and has its dispatcher.
	Idle  *time.Duration `json:"idle_ns,omitempty"`
	Left  attempt.Left   `json:"left,omitempty"`
	Error string         `json:"error,omitempty"`

	// What only a host says.
	Hello    *Hello    `json:"hello,omitempty"` // its first word
	Note     string    `json:"note,omitempty"`  // for the log
	CallBack *CallBack `json:"call_back,omitempty"`
}

// Last reports whether nothing follows the word.
func (w Word) Last() bool { return w.Left != "" || w.Error != "" }

// A Hello is how a host begins.
type Hello struct {
	Now  time.Time `json:"now"` // by its clock
	Host string    `json:"host"`
	PID  int       `json:"pid"`
}

// A CallBack is what a host asks its supervisor for: that corrald dials the host's addresses.
type CallBack struct {
	Addresses []string `json:"addresses"`
	Nonce     string   `json:"nonce"`
}

// A CalledBack is corrald's answer to a CallBack.
type CalledBack struct {
	Nonce   string      `json:"nonce"`
	Reached string      `json:"reached,omitempty"`
	Kind    corral.Kind `json:"kind,omitempty"` // of the error, if it is one
	Reason  string      `json:"reason,omitempty"`
}
