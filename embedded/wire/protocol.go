// Package wire is the worker protocol: the messages between a worker port and what dials in there, the connections that
// carry them, and dialling.
//
// A connection carries frames, each of which is one message or, where files travel, a piece of a tar archive. Sending
// never blocks and never fails: what cannot be sent shows as the end of the connection at its reader, so that one place
// of each side cleans up. Messages are checked when they are decoded; after that their receiver relies on them.
//
// The two sides' clocks need not agree: what is due is told as a duration. Welcome tells the time of day only so that a
// pilot can report how far its clock is off.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// Version is the version of the worker protocol. Both ends must have the same.
const Version = 3

// The worker protocol: over one stream connection, both sides send frames of a length (4 bytes, big
// endian) and that many bytes of JSON, an object whose "type" is one of these:
//
//	type       from        carries                        means
//	hello      dials       hello                          the first frame, at most 4 KiB: who dials in, its secrets
//	welcome    dispatcher  welcome                        admitted; the terms
//	refuse     dispatcher  kind, reason                   not admitted, or no longer; the connection is closed
//	held       worker      held, results                  follows welcome: the jobs it has, results not acknowledged
//	heartbeat  both roles  n                              alive; starts lease number n
//	pong       dispatcher  n                              lease number n is granted, counted from its heartbeat
//	assign     dispatcher  jobs                           take these, in this order
//	results    worker      results                        tasks that ended
//	ack        dispatcher  numbers                        these results are journalled: forget them
//	recall     dispatcher  keys                           hand these back if they have not started
//	cancel     dispatcher  keys                           end these; those that have not started: hand back
//	returned   worker      keys, reason                   will not run these; what has no result never started
//	drain      dispatcher                                 take nothing more, finish what runs, leave
//	draining   worker      reason                         takes nothing more
//	leave      dispatcher                                 kill what runs and leave
//	bye        worker      reason                         holds nothing any more and leaves
//	report     pilot       n, phase, reason               how the attempt is doing
//	lost       pilot       n, lost                        goes on without this host
//	reported   dispatcher  n, kind, reason                report or loss n is recorded, or (with a kind) refused
//	callback   pilot       n, addresses, nonce            dial these, which send nonce, to see whether that works
//	called     dispatcher  n, addresses, kind, reason     the one that was reached, or (with a kind) why none was
//	fetch      courier     keys, n                        send the parcel of this job, of at most n bytes; 0: any
//	parcel     dispatcher  kind, reason                   it follows in raw frames, or (with a kind) why it does not
//	deliver    courier     keys                           what became of a task of this job follows in raw frames
//	delivered  dispatcher  results, kind, reason          it is where it belongs, or (with a kind) why it is not
//
// Raw frames have bytes of a tar archive for a body; an empty one ends them.
const (
	TypeHello     = "hello"
	TypeWelcome   = "welcome"
	TypeRefuse    = "refuse"
	TypeHeld      = "held"
	TypeHeartbeat = "heartbeat"
	TypePong      = "pong"
	TypeAssign    = "assign"
	TypeResults   = "results"
	TypeAck       = "ack"
	TypeRecall    = "recall"
	TypeCancel    = "cancel"
	TypeReturned  = "returned"
	TypeDrain     = "drain"
	TypeDraining  = "draining"
	TypeLeave     = "leave"
	TypeBye       = "bye"
	TypeReport    = "report"
	TypeLost      = "lost"
	TypeReported  = "reported"
	TypeCallBack  = "callback"
	TypeCalled    = "called"
	TypeFetch     = "fetch"
	TypeParcel    = "parcel"
	TypeDeliver   = "deliver"
	TypeDelivered = "delivered"
)

// Limits of the protocol. A batch is cut so that its frame stays far below maxFrame.
const (
	MaxFrame     = 16 << 20 // bytes in any frame
	MaxHello     = 4 << 10  // bytes in the first frame, before the sender is admitted
	maxBatch     = 1 << 20  // bytes of jobs in one assign frame, unless one job alone is larger
	MaxResults   = 2048     // results in one frame
	maxName      = 512      // bytes in an id, tag, holder, host
	maxReasonLen = 1024     // bytes in a reason that a worker sends
)

// A Role says what dials in.
type Role string

const (
	RoleWorker  Role = "worker"  // takes jobs
	RolePilot   Role = "pilot"   // the attempt's own process: takes its lease, reports, hears commands
	RoleCourier Role = "courier" // carries the files of a worker that does not see a run's directory
)

// Message is the one wire type: which fields count depends on Type, as the table above says.
type Message struct {
	Type    string          `json:"type"`
	Hello   *Hello          `json:"hello,omitempty"`
	Welcome *Welcome        `json:"welcome,omitempty"`
	Held    []HeldJob       `json:"held,omitempty"`
	Jobs    []execution.Job `json:"jobs,omitempty"`
	Results []Report        `json:"results,omitempty"`
	Keys    []execution.Key `json:"keys,omitempty"`
	Numbers []int64         `json:"numbers,omitempty"`
	N       int64           `json:"n,omitempty"`
	Phase   string          `json:"phase,omitempty"`
	Kind    corral.Kind     `json:"kind,omitempty"`
	Reason  string          `json:"reason,omitempty"`

	Addresses []string `json:"addresses,omitempty"`
	Nonce     string   `json:"nonce,omitempty"`

	Lost *corral.LostHost `json:"lost,omitempty"`
}

// Hello introduces a worker or a pilot. A pilot has no ID, Instance and shape. Token says whose attempt it is; Secret,
// which the pilot has made and its workers have from it, says that they belong to the pilot with the attempt's lease.
type Hello struct {
	Version   int    `json:"version"`
	Role      Role   `json:"role"`
	Tag       string `json:"tag"`
	Token     string `json:"token"`
	Secret    string `json:"secret,omitempty"` // not of worker jobs
	ID        string `json:"id,omitempty"`
	Instance  string `json:"instance,omitempty"`
	Holder    string `json:"holder"`
	Host      string `json:"host"`
	PID       int    `json:"pid"`
	CPUs      int    `json:"cpus,omitempty"`
	MemoryMiB int    `json:"memory_mib,omitempty"`
	GPUs      int    `json:"gpus,omitempty"`
	DiskMiB   int    `json:"disk_mib,omitempty"`
	LeftMS    int64  `json:"left_ms,omitempty"` // until it stops running tasks
}

// Terms are what a dispatcher and those who dial in agree on: how long silence may last.
type Terms struct {
	Lease     time.Duration // how long a worker keeps its tasks without an answer
	Heartbeat time.Duration // between signs of life
}

// Welcome returns the message that admits the sender of a hello and tells the terms.
func (t Terms) Welcome(now time.Time) *Message {
	return &Message{Type: TypeWelcome, Welcome: &Welcome{
		Now: now.UTC(), LeaseMS: t.Lease.Milliseconds(), HeartbeatMS: t.Heartbeat.Milliseconds(),
	}}
}

// AskMessage says what is asked of an attempt.
func AskMessage(ask corral.Ask) *Message {
	if ask == corral.AskCancel {
		return &Message{Type: TypeLeave}
	}
	return &Message{Type: TypeDrain}
}

// Welcome tells the terms of the connection.
type Welcome struct {
	Now         time.Time `json:"now"`
	LeaseMS     int64     `json:"lease_ms"`
	HeartbeatMS int64     `json:"heartbeat_ms"`
}

// HeldJob is a job that a worker has, as it tells a dispatcher that may know nothing of it.
type HeldJob struct {
	Key       execution.Key `json:"key"`
	Running   bool          `json:"running"` // else it waits
	CPUs      int           `json:"cpus"`
	MemoryMiB int           `json:"memory_mib"`
	GPUs      int           `json:"gpus,omitempty"`
	DiskMiB   int           `json:"disk_mib,omitempty"`
}

// Job returns what is known of the job from that alone.
func (h HeldJob) Job() execution.Job {
	return execution.Job{
		Run: h.Key.Run, Seq: h.Key.Seq, CPUs: h.CPUs, MemoryMiB: h.MemoryMiB, GPUs: h.GPUs, DiskMiB: h.DiskMiB,
	}
}

// Report is a result under the number that its worker's instance gave it, 1 for the first.
type Report struct {
	N int64 `json:"n"`
	execution.Result
}

// ErrProtocol is what a peer that does not keep to the protocol gets; its connection is closed.
var ErrProtocol = errors.New("worker protocol violated")

// decode reads one message and checks that it is whole: after it the fields that Type needs are there
// and within their limits.
func decode(frame []byte) (*Message, error) {
	m := new(Message)
	if err := json.Unmarshal(frame, m); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrProtocol, err)
	}
	var trouble string
	switch m.Type {
	case TypeHello:
		trouble = m.Hello.trouble()
	case TypeWelcome:
		if m.Welcome == nil || m.Welcome.LeaseMS <= 0 || m.Welcome.HeartbeatMS <= 0 {
			trouble = "a welcome without terms"
		}
	case TypeHeld, TypeResults, TypeDelivered:
		trouble = heldTrouble(m)
	case TypeAssign:
		trouble = jobsTrouble(m.Jobs)
	case TypeLost:
		if m.Lost == nil || max(len(m.Lost.Node), len(m.Lost.Why)) > maxReasonLen {
			trouble = "a host that is lost without saying which, or with too many words"
		}
	case TypeCalled:
		if m.Kind == "" && len(m.Addresses) != 1 {
			trouble = "a call that neither reached an address nor failed"
		}
	case TypeRefuse, TypeHeartbeat, TypePong, TypeAck, TypeRecall, TypeCancel, TypeReturned, TypeDrain,
		TypeDraining, TypeLeave, TypeBye, TypeReport, TypeReported, TypeCallBack, TypeParcel:
	case TypeFetch, TypeDeliver:
		if len(m.Keys) != 1 {
			trouble = "a parcel that is not of one job"
		}
	default:
		trouble = fmt.Sprintf("unknown type %.40q", m.Type)
	}
	if trouble == "" && len(m.Reason) > 4*maxReasonLen {
		trouble = "a reason of more than 4 KiB"
	}
	if trouble != "" {
		return nil, fmt.Errorf("%w: %s", ErrProtocol, trouble)
	}
	return m, nil
}

// onHolder follows the holder's name in the ids of workers that run on another worker, which is their holder: those of
// worker jobs (jobfiles.StreamWorker).
const onHolder = "+"

// trouble says what is wrong with h, or nothing. The version is not looked at: another version is
// refused with a sentence of its own.
func (h *Hello) trouble() string {
	switch {
	case h == nil:
		return "a hello without its body"
	case h.Role != RoleWorker && h.Role != RolePilot && h.Role != RoleCourier:
		return fmt.Sprintf("unknown role %.40q", h.Role)
	case h.Tag == "" || h.Holder == "":
		return "a hello without tag or holder"
	case max(len(h.Tag), len(h.Holder), len(h.ID), len(h.Instance), len(h.Host)) > maxName:
		return "a name of more than 512 bytes"
	case h.Role == RolePilot:
		return ""
	case !strings.HasPrefix(h.ID, h.Tag+"/") && !strings.HasPrefix(h.ID, h.Holder+onHolder) || h.Instance == "":
		return "a worker whose id does not start with its tag, or without instance"
	case h.CPUs < 1 || h.CPUs > 1<<16 || min(h.MemoryMiB, h.GPUs, h.DiskMiB) < 0 || h.GPUs > 1<<16,
		h.LeftMS < 0 || h.LeftMS > int64(maxLeft/time.Millisecond):
		return "a worker of impossible shape"
	}
	return ""
}

// maxLeft bounds the time that a worker may claim to have left.
const maxLeft = 10 * 365 * 24 * time.Hour

// heldTrouble says what is wrong with the jobs and results of a message. Its words come from a worker, whose machine
// others share.
func heldTrouble(m *Message) string {
	for _, h := range m.Held {
		if h.CPUs < 1 || min(h.MemoryMiB, h.GPUs, h.DiskMiB) < 0 {
			return "a held job of impossible shape"
		}
	}
	for i := range m.Results {
		r := &m.Results[i]
		switch r.Status {
		case execution.Done, execution.Failed, execution.Cut, execution.Cancelled:
		default:
			return fmt.Sprintf("unknown status %.40q", r.Status)
		}
		if r.Cause != "" && r.Cause != execution.OverMemory && r.Cause != execution.OverTime {
			return fmt.Sprintf("unknown cause %.40q", r.Cause)
		}
		if max(len(r.Reason), len(r.Signal), len(r.Worker)) > 4*maxReasonLen {
			return "a result of too many words"
		}
		if len(r.Changed) > execution.MostChanged || slices.ContainsFunc(r.Changed, tooLong) {
			return "a result with too many inputs that were changed"
		}
	}
	return ""
}

// tooLong reports whether a name cannot be that of a file.
func tooLong(name string) bool { return len(name) > 4*maxReasonLen }

// jobsTrouble says what is wrong with jobs that a dispatcher assigns.
func jobsTrouble(jobs []execution.Job) string {
	for i := range jobs {
		j := &jobs[i]
		if j.CPUs < 1 || min(j.MemoryMiB, j.GPUs, j.DiskMiB) < 0 || len(j.Tasks) == 0 {
			return "a job of impossible shape"
		}
	}
	return ""
}
