package condorworker

// A stream worker is the program of a worker job: an HTCondor job that receives the tasks of runs over a connection to
// corrald as long as there are tasks. Its share of the machine is in the ad of its slot, corrald's address is in the ad
// of its glidein, and the secret with which it is admitted is in a file that was transferred with the job.
//
// HTCondor ends the worker with SIGTERM when the job is removed, held or evicted; the worker then kills the running
// tasks and returns their results before it leaves. It also leaves when it has been idle for a while, which frees its
// slot, or when corrald has not answered for a long time.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/worker"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/node/nodecheck"
)

const (
	// idleMost is the time for which a worker keeps an idle slot. HTCondor needs several seconds to allocate a new
	// slot, so staying between two levels of a workflow is worthwhile.
	idleMost = 20 * time.Second
	// aloneMost is the time for which a worker waits for an unreachable corrald, unless its lease is longer: by then
	// its tasks have been killed, and a restarted corrald can request other workers.
	aloneMost = 5 * time.Minute
	// maxSandbox limits the length of the file that is transferred with the job, in bytes.
	maxSandbox = 4096
	// unbounded is the assumed time of a glidein that does not announce its end.
	unbounded = 10 * 365 * 24 * time.Hour
)

// Run is the program of the worker job with this number. It returns when the worker has left.
func Run(ctx context.Context, lg *slog.Logger, number int64) error {
	ctx, cancel, slot, err := Enter(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	cfg, err := config(slot, number, time.Now())
	if err != nil {
		return err
	}
	if err := os.Mkdir(cfg.Scratch, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	cfg.DiskMiB = nodecheck.FreeMiB(cfg.Scratch)
	drain := make(chan struct{})
	stop := sync.OnceFunc(func() { close(drain) })
	cfg.Drain = drain
	cfg.Idle = func(idle time.Duration) {
		if idle > idleMost {
			stop()
		}
	}
	reason, err := worker.Run(ctx, lg, cfg)
	lg.Info("the worker has left", "reason", reason)
	return err
}

// config returns the worker's configuration, from its slot and the file transferred with its job.
func config(slot CondorSlot, number int64, now time.Time) (cfg worker.Config, err error) {
	text, err := input.ReadFile(filepath.Join(slot.Dir, jobfiles.StreamFile), maxSandbox)
	var came jobfiles.Stream
	if err == nil {
		err = json.Unmarshal(text, &came)
	}
	switch {
	case err != nil:
		return cfg, fmt.Errorf("reading the file transferred with the job: %w", err)
	case len(slot.Home) == 0:
		return cfg, fmt.Errorf("glidein %s does not name corrald's address", slot.Worker)
	}
	cfg = worker.Config{
		ID: jobfiles.StreamWorker(slot.Worker, number), Instance: rand.Text(), Holder: slot.Worker, Host: slot.Host,
		Tag: came.Tag, Token: came.Token, Addresses: slot.Home, CertDigest: slot.HomeDigest,
		Resources: corral.Resources{
			CPUs: max(1, slot.CPUs), MemoryMiB: max(1, slot.MemoryMiB), GPUs: slot.GPUs,
		},
		Scratch: filepath.Join(slot.Dir, "tasks"), Speed: slot.Speed, EndsIn: unbounded, Alone: aloneMost,
	}
	if slot.GPUs > 0 {
		cfg.Devices = nodecheck.GPUs(os.Getenv, slot.GPUs)
	}
	if !slot.Ends.IsZero() {
		cfg.EndsIn = slot.Ends.Sub(now)
	}
	return cfg, nil
}
