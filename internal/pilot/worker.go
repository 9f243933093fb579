package pilot

import (
	"context"
	"log/slog"
	"time"

	"github.com/corral-pilot/corral/embedded/worker"
	"github.com/corral-pilot/corral/internal/pilot/attempt"
	"github.com/corral-pilot/corral/internal/pilot/condorworker"
	"github.com/corral-pilot/corral/internal/pilot/process"
)

// Worker is the worker process. It serves a personal cluster of either kind, as its order says, and leaves at once when
// ctx ends or the supervisor is gone. It is a process of its own because of what may happen to it: memory runs out,
// it hangs, a task kills its parent. The supervisor survives that, clears away and starts another.
func Worker(ctx context.Context, lg *slog.Logger) error {
	serve := func(ctx context.Context, o process.Order, drain <-chan struct{}, out *process.Pipe) process.Word {
		if o.Join != nil {
			return condorworker.Serve(ctx, lg, o, drain, out)
		}
		reason, err := worker.Run(ctx, lg, worker.Config{
			ID: o.ID, Instance: newHolder().ID, Host: o.Host, Holder: o.Holder, Tag: o.Tag, Token: o.Token,
			Addresses: o.Addresses, CertDigest: o.CertDigest, CPUs: o.CPUs, MemoryMiB: o.MemoryMiB,
			EndsIn: o.EndsIn, Scratch: o.Scratch, Drain: drain,
			Registered: func() { out.Say(process.Word{Registered: true}) },
			Idle:       func(idle time.Duration) { out.Say(process.Word{Idle: &idle}) },
		})
		last := process.Word{Left: attempt.Left(reason)} // both have the same names
		if err != nil {
			last.Error = err.Error()
		}
		return last
	}
	return process.Work(ctx, serve)
}
