// Package wire is the worker protocol: the messages between a worker port and its clients, the connections that carry
// them, and dialling.
//
// A connection carries frames, each of which is one message or, during a file transfer, a piece of a tar archive.
// Sending never blocks and never fails: a failure ends the connection, which its reader detects, so that each side
// cleans up in one place. Messages are checked when they are decoded; their receiver need not check them again.
//
// The clocks of the two sides need not agree: deadlines are sent as durations. Welcome contains the time of day only so
// that a pilot can report the offset of its clock.
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

// Version is the version of the worker protocol. Both ends must have the same version.
const Version = 3

// The worker protocol: over one stream connection, both sides send frames of a length (4 bytes, big endian) and that
// many bytes of JSON, an object whose "type" is one of these:
//
//	type       from        carries                        meaning
//	hello      client      hello                          the first frame, at most 4 KiB: the client and its secrets
//	welcome    dispatcher  welcome                        the client is admitted, on these terms
//	refuse     dispatcher  kind, reason                   not admitted, or no longer; the connection is closed
//	held       worker      held, results                  follows welcome: jobs held, results not acknowledged
//	heartbeat  both roles  n                              the sender is alive and requests lease number n
//	pong       dispatcher  n                              lease number n is granted, counted from its heartbeat
//	assign     dispatcher  jobs                           take these jobs, in this order
//	results    worker      results                        results of tasks that have ended
//	ack        dispatcher  numbers                        these results have been journalled: delete them
//	recall     dispatcher  keys                           return these jobs if they have not started
//	cancel     dispatcher  keys                           end these jobs; return those that have not started
//	returned   worker      keys, reason                   will not run these jobs; tasks with no result never started
//	drain      dispatcher                                 accept no more jobs, finish the running ones, leave
//	draining   worker      reason                         accepts no more jobs
//	leave      dispatcher                                 kill the running tasks and leave
//	bye        worker      reason                         holds no jobs and leaves
//	report     pilot       n, phase, reason               phase of the attempt
//	lost       pilot       n, lost                        the attempt continues without this host
//	reported   dispatcher  n, kind, reason                report or loss n is recorded or, with a kind, refused
//	callback   pilot       n, addresses, nonce            test whether these addresses, which send nonce, answer
//	called     dispatcher  n, addresses, kind, reason     the address that was reached or, with a kind, why none was
//	fetch      courier     keys, n                        send the parcel of this job, at most n bytes; 0: any size
//	parcel     dispatcher  kind, reason                   it follows in raw frames; with a kind, why it does not
//	deliver    courier     keys                           a task's results and files follow in raw frames
//	delivered  dispatcher  results, kind, reason          the files are in place; with a kind, why they are not
//
// The body of a raw frame is a piece of a tar archive; an empty frame ends the transfer.
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

// Limits of the protocol. A batch is cut so that its frame stays far below MaxFrame.
const (
	MaxFrame     = 16 << 20 // bytes in any frame
	MaxHello     = 4 << 10  // bytes in the first frame, before the sender is admitted
	maxBatch     = 1 << 20  // bytes of jobs in one assign frame, unless one job alone is larger
	MaxResults   = 2048     // results in one frame
	maxName      = 512      // bytes in an id, tag, holder or host
	maxReasonLen = 1024     // bytes in a reason that a worker sends
)

// A Role is the kind of a client.
type Role string

const (
	RoleWorker  Role = "worker"  // takes jobs
	RolePilot   Role = "pilot"   // the attempt's own process: takes its lease, sends reports, receives commands
	RoleCourier Role = "courier" // carries files for a worker that does not see a run's directory
)

// Message is the only wire type: its Type determines which fields are used, as listed in the table above.
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

// Hello introduces a worker or a pilot. A pilot has no ID, Instance or shape. Token identifies the attempt; Secret,
// which the pilot created and passes to its workers, proves that they belong to the pilot with the attempt's lease.
type Hello struct {
	Version   int    `json:"version"`
	Role      Role   `json:"role"`
	Tag       string `json:"tag"`
	Token     string `json:"token"`
	Secret    string `json:"secret,omitempty"` // not sent by worker jobs
	ID        string `json:"id,omitempty"`
	Instance  string `json:"instance,omitempty"`
	Holder    string `json:"holder"`
	Host      string `json:"host"`
	PID       int    `json:"pid"`
	CPUs      int    `json:"cpus,omitempty"`
	MemoryMiB int    `json:"memory_mib,omitempty"`
	GPUs      int    `json:"gpus,omitempty"`
	DiskMiB   int    `json:"disk_mib,omitempty"`
	LeftMS    int64  `json:"left_ms,omitempty"` // time until it stops running tasks

	Speed corral.Speed `json:"speed,omitempty"` // of its host, according to its order
}

// Terms are the limits on silence that a dispatcher announces to its clients.
type Terms struct {
	Lease     time.Duration // how long a worker keeps its tasks without an answer
	Heartbeat time.Duration // interval between heartbeats
}

// Welcome returns the message that admits the sender of a hello and announces the terms.
func (t Terms) Welcome(now time.Time) *Message {
	return &Message{Type: TypeWelcome, Welcome: &Welcome{
		Now: now.UTC(), LeaseMS: t.Lease.Milliseconds(), HeartbeatMS: t.Heartbeat.Milliseconds(),
	}}
}

// AskMessage returns the message that makes a request to an attempt.
func AskMessage(ask corral.Ask) *Message {
	if ask == corral.AskCancel {
		return &Message{Type: TypeLeave}
	}
	return &Message{Type: TypeDrain}
}

// Welcome announces the terms of the connection.
type Welcome struct {
	Now         time.Time `json:"now"`
	LeaseMS     int64     `json:"lease_ms"`
	HeartbeatMS int64     `json:"heartbeat_ms"`
}

// HeldJob is a job that a worker holds, as reported to a dispatcher that may not know it.
type HeldJob struct {
	Key       execution.Key `json:"key"`
	Running   bool          `json:"running"` // false: it waits
	CPUs      int           `json:"cpus"`
	MemoryMiB int           `json:"memory_mib"`
	GPUs      int           `json:"gpus,omitempty"`
	DiskMiB   int           `json:"disk_mib,omitempty"`
}

// Job returns the job as far as it can be derived from the report.
func (h HeldJob) Job() execution.Job {
	return execution.Job{
		Run: h.Key.Run, Seq: h.Key.Seq, CPUs: h.CPUs, MemoryMiB: h.MemoryMiB, GPUs: h.GPUs, DiskMiB: h.DiskMiB,
	}
}

// Report is a result with the number that its worker's instance gave it, starting with 1.
type Report struct {
	N int64 `json:"n"`
	execution.Result
}

// ErrProtocol reports that the peer violated the protocol; its connection is closed.
var ErrProtocol = errors.New("worker protocol violated")

// decode reads one message and checks that it is complete: afterwards the fields that its Type requires are present and
// within their limits.
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
			trouble = "a lost host without a name, or with too long a text"
		}
	case TypeCalled:
		if m.Kind == "" && len(m.Addresses) != 1 {
			trouble = "a call that neither reached an address nor failed"
		}
	case TypeRefuse, TypeHeartbeat, TypePong, TypeAck, TypeRecall, TypeCancel, TypeReturned, TypeDrain,
		TypeDraining, TypeLeave, TypeBye, TypeReport, TypeReported, TypeCallBack, TypeParcel:
	case TypeFetch, TypeDeliver:
		if len(m.Keys) != 1 {
			trouble = "a parcel must be for exactly one job"
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

// onHolder separates the holder's name in the id of a worker that runs inside another worker, its holder: worker jobs
// run in this way (jobfiles.StreamWorker).
const onHolder = "+"

// trouble describes the first error in h, or returns "" if h is valid. It does not check the version, for which there
// is a separate refusal.
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
		return "a worker without an instance, or with an id that does not start with its tag"
	case h.CPUs < 1 || h.CPUs > 1<<16 || min(h.MemoryMiB, h.GPUs, h.DiskMiB) < 0 || h.GPUs > 1<<16,
		h.LeftMS < 0 || h.LeftMS > int64(maxLeft/time.Millisecond), !h.Speed.Valid():
		return "a worker with impossible resources"
	}
	return ""
}

// maxLeft limits the remaining time that a worker may announce.
const maxLeft = 10 * 365 * 24 * time.Hour

// heldTrouble describes the first error in the jobs and results of a message. The message comes from a worker, whose
// machine may be shared with other users.
func heldTrouble(m *Message) string {
	for _, h := range m.Held {
		if h.CPUs < 1 || min(h.MemoryMiB, h.GPUs, h.DiskMiB) < 0 {
			return "a held job with impossible resources"
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
			return "a result with too long a text"
		}
		if len(r.Changed) > execution.MostChanged || slices.ContainsFunc(r.Changed, tooLong) {
			return "a result with too many changed inputs, or with too long a name"
		}
	}
	return ""
}

// tooLong reports whether a name is too long for a file name.
func tooLong(name string) bool { return len(name) > 4*maxReasonLen }

// jobsTrouble describes the first error in jobs that a dispatcher assigns.
func jobsTrouble(jobs []execution.Job) string {
	for i := range jobs {
		j := &jobs[i]
		if j.CPUs < 1 || min(j.MemoryMiB, j.GPUs, j.DiskMiB) < 0 || len(j.Tasks) == 0 {
			return "a job with impossible resources"
		}
	}
	return ""
}
