package pilot

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/node/condorworker"
	"github.com/corral-pilot/corral/internal/node/nodecheck"
	"github.com/corral-pilot/corral/internal/node/process"
)

// With the functions below the supervisor manages its workers. The roster contains a worker for each host, for as long
// as the pilot stays; a child is the worker's process, or the srun or ssh that leads to a host with that process. The
// map s.serves maps children to workers.

// start starts the workers that are due. A worker on another node receives its order after its host has sent a hello.
func (s *supervisor) start(now time.Time) {
	for _, w := range s.roster.Due(now) {
		c, err := s.startProcess(w, now)
		if err != nil {
			s.died(w, err.Error())
			continue
		}
		w.Start()
		s.serves[c] = w
		s.log.note("worker %s is started %s", w.ID, c)
	}
}

// startProcess starts a worker process on this node, or a host on another. The process that starts a worker creates its
// scratch directory, so that the directory exists from the beginning.
func (s *supervisor) startProcess(w *attempt.Worker, now time.Time) (*process.Child, error) {
	if w.Node != "" {
		return s.group.StartFar(s.fanout, w.Node)
	}
	if err := os.MkdirAll(scratchOf(s.dir, w), 0o700); err != nil {
		return nil, err
	}
	o, err := s.workerOrder(w, now)
	if err != nil {
		return nil, err
	}
	return s.group.Start(o)
}

// scratchOf returns the folder for a worker's own files, below the job's directory.
func scratchOf(dir string, w *attempt.Worker) string {
	return filepath.Join(dir, scratchDir, filepath.Base(w.ID))
}

// workerOrder returns the order for a worker that is started now. It contains the remaining time as a duration, because
// the clocks of nodes differ. It fails while the job has no token for the HTCondor pool.
func (s *supervisor) workerOrder(w *attempt.Worker, now time.Time) (o process.Order, err error) {
	o = process.Order{
		PilotOrder: *s.order.Pilot, ID: w.ID, Tag: s.order.Tag, Holder: s.me.ID, Secret: s.me.secret,
		Host: cmp.Or(w.Node, s.me.Host), EndsIn: s.stay.End.Sub(now), Scratch: scratchOf(s.dir, w),
	}
	o.Place, o.Beside = s.roster.Place(w)
	if s.joining != nil {
		o.Join, err = s.joining.Order(s.dir)
	}
	return o, err
}

// hear handles a word from a worker's process or from a worker's host. Only a host sends a hello, a note or a request
// to be called back.
func (s *supervisor) hear(c *process.Child, w *attempt.Worker, said process.Word) {
	now := time.Now()
	switch {
	case said.Registered:
		w.Register(now)
	case said.Idle != nil:
		w.Idle(*said.Idle, now)
	case said.Hello != nil:
		s.greet(c, w, *said.Hello)
	case said.Note != "":
		s.log.note("worker %s on node %s: %s", w.ID, w.Node, said.Note)
	case said.CallBack != nil:
		ask := s.up.callBack
		if ask == nil {
			ask = broker.CallBack(condorworker.NotAtSchedd)
		}
		s.up.ask(c, *said.CallBack, ask)
	}
}

// greet sends a host its order, unless its clock is wrong. The host's clock is compared with corrald's, if corrald's is
// known, because both machines write times into the same records. A late host also receives the decision about the
// pilot's phase at once.
func (s *supervisor) greet(c *process.Child, w *attempt.Worker, h process.Hello) {
	now := time.Now()
	o, err := s.workerOrder(w, now)
	if bad := nodecheck.CheckClock(now.Add(s.up.ahead).Sub(h.Now)); bad != nil {
		err = bad
	}
	if err != nil {
		c.Last = process.Word{Left: attempt.LeftUnable, Error: err.Error()}
		c.Tell(process.Ask{Leave: true})
		return
	}
	s.log.note("worker %s: node %s is %s, process %d", w.ID, w.Node, h.Host, h.PID)
	c.Tell(process.Ask{Host: &process.HostOrder{
		Order: o, Dir: s.dir, HungAfter: s.hungAfter(), Env: carried(),
		Linked: s.up.link != nil && s.joining != nil && !s.order.Pilot.Attached(),
	}})
	if s.told != attempt.Staying {
		c.Tell(following(s.told))
	}
}

// bury handles the end of a child. A child that sent a reason to leave has left; any other child has died.
func (s *supervisor) bury(c *process.Child) {
	w := s.serves[c]
	delete(s.serves, c)
	if c.Last.Left == "" {
		s.died(w, c.Obituary())
		return
	}
	s.log.note("worker %s left: %s %s", w.ID, c.Last.Left, c.Last.Error)
	if lost := s.roster.Leave(w, c.Last.Left, c.Last.Error); lost != nil {
		s.lose(*lost)
	}
}

// died handles a worker's process that ended without a valid reason, or that could not be started.
func (s *supervisor) died(w *attempt.Worker, how string) {
	s.say("worker died", "worker "+w.ID+" "+how)
	if lost := s.roster.Die(w, how); lost != nil {
		s.log.note("worker %s given up", w.ID)
		s.lose(*lost)
	}
}

// lose reports the loss of a host. The other hosts continue; if no host is left, the pilot ends and reports the loss.
func (s *supervisor) lose(l corral.LostHost) {
	s.log.note("node failed: %s; %s", l, s.roster.Remaining())
	if s.roster.Serving() > 0 {
		s.up.loseHost(l)
	}
}
