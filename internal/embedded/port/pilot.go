package port

import (
	"context"
	"sync"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// servePilot serves an admitted pilot until its connection ends. The caller closes c. Reports are recorded one after
// another, in their order; a call back takes seconds, so it runs concurrently.
func (p *Port) servePilot(ctx context.Context, c *wire.Conn, adm Admission) {
	adm.Links.join(c, adm.Attempt)
	farewell := false
	defer func() { adm.Links.part(c, farewell) }()
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	for {
		msg, err := c.Recv(wire.MaxHello)
		if err != nil {
			return
		}
		switch msg.Type {
		case wire.TypeHeartbeat:
			c.Send(&wire.Message{Type: wire.TypePong, N: msg.N})
		case wire.TypeReport, wire.TypeLost:
			c.Send(p.report(ctx, adm.Attempt, msg))
		case wire.TypeCallBack:
			calls.Go(func() { c.Send(p.callBack(ctx, c, adm, msg)) })
		case wire.TypeBye:
			farewell = true
			return
		default:
			p.lg.Info("pilot disconnected", "attempt", adm.Attempt, "sent", msg.Type)
			return
		}
	}
}

// report records a pilot's report and returns the answer. The pilot repeats a report that was not recorded.
func (p *Port) report(ctx context.Context, attempt corral.JobID, m *wire.Message) *wire.Message {
	answer := &wire.Message{Type: wire.TypeReported, N: m.N}
	ctx, cancel := context.WithTimeout(ctx, wire.AdmitTimeout)
	defer cancel()
	var err error
	if m.Type == wire.TypeLost {
		err = p.gate.LoseHost(ctx, attempt, *m.Lost)
	} else {
		err = p.gate.Report(ctx, attempt, m.Phase, wire.Clip(m.Reason))
	}
	if err != nil {
		p.lg.Error("recording a pilot's report", "attempt", attempt, "phase", m.Phase, "error", err)
		answer.Kind, answer.Reason = corral.KindOf(err), wire.Clip(err.Error())
	}
	return answer
}
