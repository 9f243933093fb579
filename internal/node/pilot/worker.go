package pilot

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/embedded/worker"
	"github.com/corral-pilot/corral/internal/node/condorworker"
	"github.com/corral-pilot/corral/internal/node/nodecheck"
	"github.com/corral-pilot/corral/internal/node/process"
)

// Worker is the worker process. It serves a cluster of either kind, as specified in its order, and leaves at once when
// ctx ends or the supervisor has ended. It is a separate process because it may fail: it may run out of memory, hang,
// or be killed by a task. The supervisor then continues, cleans up and starts another worker.
func Worker(ctx context.Context, lg *slog.Logger) error {
	serve := func(ctx context.Context, o process.Order, drain <-chan struct{}, out *process.Pipe) process.Word {
		if o.Join != nil {
			return condorworker.Serve(ctx, lg, o, drain, out)
		}
		gpus, diskMiB := shareOf(o)
		reason, err := worker.Run(ctx, lg, worker.Config{
			ID: o.ID, Instance: newHolder().ID, Host: o.Host, Holder: o.Holder,
			Tag: o.Tag, Token: o.Token, Secret: o.Secret,
			Addresses: o.Addresses, CertDigest: o.CertDigest,
			Resources: corral.Resources{CPUs: o.CPUs, MemoryMiB: o.MemoryMiB, GPUs: len(gpus), DiskMiB: diskMiB},
			Devices:   gpus, Speed: o.Speed, EndsIn: o.EndsIn, Scratch: o.Scratch, Drain: drain,
			Registered: func() { out.Say(process.Word{Registered: true}) },
			Idle:       func(idle time.Duration) { out.Say(process.Word{Idle: &idle}) },
		})
		last := process.Word{Left: attempt.Left(reason)} // both types use the same names
		if err != nil {
			last.Error = err.Error()
		}
		return last
	}
	if err := process.Hide(); err != nil {
		return err
	}
	return process.Work(ctx, serve)
}

// shareOf returns the GPUs of this node reserved for the worker, and its share of the free disk space. The job's GPUs
// are for all workers on the node.
func shareOf(o process.Order) (gpus []string, diskMiB int) {
	beside := max(1, o.Beside)
	gpus = nodecheck.Share(nodecheck.GPUs(os.Getenv, o.GPUs*beside), o.Place, beside)
	return gpus, nodecheck.FreeMiB(o.Scratch) / beside
}
