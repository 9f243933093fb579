package pilot

import (
	"context"
	"log/slog"
	"time"

	"github.com/corral-pilot/corral/internal/pilot/attempt"
	"github.com/corral-pilot/corral/internal/pilot/condorworker"
	"github.com/corral-pilot/corral/internal/pilot/process"
	"github.com/corral-pilot/corral/pool"
)

// Worker is the worker process. It serves a personal cluster of either kind, as its order says, and leaves at once when
// ctx ends or the supervisor is gone.
func Worker(ctx context.Context, lg *slog.Logger) error {
	serve := func(ctx context.Context, o process.Order, drain <-chan struct{}, out *process.Speaker) process.Word {
		if o.Condor != nil {
			return condorworker.Serve(ctx, lg, o, drain, out)
		}
		return servePool(ctx, lg, o, drain, out)
	}
	return process.Work(ctx, serve)
}

// servePool serves corrald's own dispatcher, and returns the worker's last word.
func servePool(
	ctx context.Context, lg *slog.Logger, o process.Order, drain <-chan struct{}, out *process.Speaker,
) process.Word {
	reason, err := pool.RunWorker(ctx, lg, pool.WorkerConfig{
		ID: o.ID, Instance: newHolder().ID, Host: o.Host, Holder: o.Holder, Tag: o.Tag, Token: o.Token,
		Addresses: o.Addresses, CertDigest: o.CertDigest, CPUs: o.CPUs, MemoryMiB: o.MemoryMiB,
		EndsIn: o.EndsIn, Scratch: o.Scratch, Drain: drain,
		// A supervisor that does not hear these is gone, which the worker notices otherwise.
		Registered: func() { _ = out.Say(process.Word{Registered: true}) },
		Idle:       func(idle time.Duration) { _ = out.Say(process.Word{Idle: &idle}) },
	})
	last := process.Word{Left: attempt.Left(reason)} // they have the same names
	if err != nil {
		last.Error = err.Error()
	}
	return last
}
