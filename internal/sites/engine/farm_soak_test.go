//go:build soak

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// A farm simulates a remote site: a head node with a root, and a batch system with a queue. Its jobs consist only of
// times on the bubble's clock. A share of its commands fails in each of the ways in which a site's commands can fail.
type farm struct {
	mu      sync.Mutex // guards all fields
	draw    *rand.Rand
	share   float64 // share of commands that fail
	drop    func()  // ends the engine during a command; nil: it stays alive
	drops   int     // number of drops to come
	jobs    map[string]*farmJob
	root    map[string]bool     // files below the root
	all     map[string]*farmJob // all jobs that ever existed
	ever    int                 // number of pilots
	doubled []string            // tags of duplicate jobs
	faults  int
}

// A farmJob waits in the queue, runs, and leaves a directory until it is forgotten.
type farmJob struct {
	starts, ends time.Time
	killed       gridsite.Killed
	pilot        bool
}

func newFarm(seed uint64, share float64) *farm {
	return &farm{draw: rand.New(rand.NewPCG(seed, 1)), share: share, jobs: map[string]*farmJob{},
		all: map[string]*farmJob{}, root: map[string]bool{}}
}

var errLine = errors.New("the line was cut")

// command performs the action, or fails to, or performs it without an answer.
func command[T any](ctx context.Context, f *farm, act func(now time.Time) (T, error)) (T, error) {
	var none T
	f.mu.Lock()
	bad := f.draw.Float64() < f.share
	kind, late := f.draw.IntN(4), time.Duration(f.draw.IntN(3000))*time.Millisecond
	dropped := f.drop != nil && f.drops > 0 && f.draw.IntN(40) == 0
	if dropped {
		f.drops--
	}
	if bad {
		f.faults++
	}
	f.mu.Unlock()
	wait := 20*time.Millisecond + late
	if bad && kind == 3 {
		wait = time.Hour // longer than any caller waits
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if bad && kind == 0 {
		return none, errLine
	}
	got, err := act(time.Now())
	if dropped { // done, but the caller is gone
		f.drop()
		return none, context.Canceled
	}
	if bad && kind == 1 {
		return none, errLine
	}
	return got, err
}

// try is command for actions without a result.
func (f *farm) try(ctx context.Context, act func(now time.Time) error) error {
	_, err := command(ctx, f, func(now time.Time) (struct{}, error) { return struct{}{}, act(now) })
	return err
}

// left lists what should have been removed.
func (f *farm) left(now time.Time) (left []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for tag, j := range f.jobs {
		left = append(left, fmt.Sprintf("%s, over at %s", tag, j.ends))
	}
	for name := range f.root {
		left = append(left, name)
	}
	return append(left, f.doubled...)
}

func (f *farm) Submit(ctx context.Context, spec gridsite.JobSpec) (string, error) {
	return command(ctx, f, func(now time.Time) (string, error) {
		if f.jobs[spec.Tag] != nil {
			f.doubled = append(f.doubled, spec.Tag+" was submitted twice")
		}
		j := &farmJob{starts: now, ends: now.Add(20 * time.Second)}
		if strings.Contains(spec.Tag, "-pilot-") {
			f.ever++
			j.pilot = true
			j.starts = now.Add(time.Duration(f.draw.ExpFloat64() * float64(5*time.Minute)))
			j.ends, j.killed = j.starts.Add(spec.Walltime), gridsite.ByWalltime
			if f.draw.IntN(100) == 0 {
				j.ends, j.killed = j.starts.Add(time.Duration(f.draw.Int64N(int64(spec.Walltime)))), gridsite.ByNode
			}
		}
		f.jobs[spec.Tag], f.all[spec.Tag] = j, j
		return "job." + spec.Tag, nil
	})
}

func (f *farm) Poll(ctx context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	return command(ctx, f, func(now time.Time) (map[string]gridsite.JobStatus, error) {
		found := map[string]gridsite.JobStatus{}
		for _, tag := range tags {
			j := f.jobs[tag]
			if j == nil {
				continue
			}
			s := gridsite.JobStatus{Tag: tag, ID: "job." + tag, Phase: gridsite.Queued}
			switch {
			case !now.Before(j.ends):
				s.Phase, s.EndedAt, s.Killed = gridsite.Ended, j.ends, j.killed
				if j.starts.Before(j.ends) {
					s.StartedAt = j.starts
				}
			case !now.Before(j.starts):
				s.Phase, s.StartedAt = gridsite.Running, j.starts
			}
			found[tag] = s
		}
		return found, nil
	})
}

// ReadMany returns a report for each job that ended by itself.
func (f *farm) ReadMany(ctx context.Context, tags, _ []string) (map[string]map[string][]byte, error) {
	return command(ctx, f, func(now time.Time) (map[string]map[string][]byte, error) {
		files := map[string]map[string][]byte{}
		for _, tag := range tags {
			if j := f.jobs[tag]; j != nil && j.killed == gridsite.NotKilled && !now.Before(j.ends) {
				b, err := json.Marshal(jobfiles.Report{Outcome: corral.OutcomeDone, StartedAt: j.starts, EndedAt: j.ends})
				if err != nil {
					return nil, err
				}
				files[tag] = map[string][]byte{jobfiles.ReportFile: b}
			}
		}
		return files, nil
	})
}

func (f *farm) Read(ctx context.Context, tag, name string) ([]byte, error) {
	files, err := f.ReadMany(ctx, []string{tag}, []string{name})
	if b, ok := files[tag][name]; ok || err != nil {
		return b, err
	}
	return nil, fs.ErrNotExist
}

func (f *farm) CancelMany(ctx context.Context, tags []string, _ time.Duration) error {
	return f.try(ctx, func(now time.Time) error {
		for _, tag := range tags {
			if j := f.jobs[tag]; j != nil && now.Before(j.ends) {
				j.ends, j.killed = now, gridsite.ByCancel
			}
		}
		return nil
	})
}

func (f *farm) Cancel(ctx context.Context, tag string, grace time.Duration) error {
	return f.CancelMany(ctx, []string{tag}, grace)
}

func (f *farm) ForgetMany(ctx context.Context, tags []string) error {
	return f.try(ctx, func(now time.Time) error {
		for _, tag := range tags {
			if j := f.jobs[tag]; j != nil && now.Before(j.ends) {
				return &gridsite.Refused{Text: tag + " has not ended", Transient: true}
			}
			delete(f.jobs, tag)
		}
		return nil
	})
}

func (f *farm) Forget(ctx context.Context, tag string) error { return f.ForgetMany(ctx, []string{tag}) }

// Run is a method of Conn that a farm does not need.
func (f *farm) Run(context.Context, gridsite.Command) (gridsite.Result, error) {
	return gridsite.Result{}, errLine
}

func (f *farm) Put(context.Context, string, fs.FileMode, io.Reader) error { return errLine }

func (f *farm) Close() error { return nil }

// A farmHead is the farm's head node.
type farmHead struct{ f *farm }

func (h farmHead) Close() error { return nil }

func (h farmHead) Ping(ctx context.Context) error {
	return h.f.try(ctx, func(time.Time) error { return nil })
}

func (h farmHead) Check(ctx context.Context, _ gridsite.Claim) error { return h.Ping(ctx) }

func (h farmHead) Platform(ctx context.Context) (corral.Platform, error) {
	return corral.Platform{OS: "linux", Arch: "x86_64", Libc: "glibc2.36"}, h.Ping(ctx)
}

func (h farmHead) Has(ctx context.Context, name string, _ bool) (bool, error) {
	return command(ctx, h.f, func(time.Time) (bool, error) { return h.f.root[name], nil })
}

func (h farmHead) Sees(ctx context.Context, _ string) (bool, error) { return false, h.Ping(ctx) }

func (h farmHead) Boot(ctx context.Context, program string, _ gridsite.Claim, _ func() (io.ReadCloser, error)) error {
	return h.f.try(ctx, func(time.Time) error { h.f.root[program] = true; return nil })
}

func (h farmHead) Push(ctx context.Context, name, _ string, _ func() (io.ReadCloser, error)) (string, error) {
	return "file:///" + name, h.f.try(ctx, func(time.Time) error { h.f.root[name] = true; return nil })
}

func (h farmHead) Replace(ctx context.Context, _, _ string, _ []byte) error { return h.Ping(ctx) }

func (h farmHead) Sweep(ctx context.Context, _ bool) error {
	return h.f.try(ctx, func(now time.Time) error {
		for tag, j := range h.f.jobs {
			if now.Before(j.ends) {
				h.f.doubled = append(h.f.doubled, tag+" was alive when the root was removed")
			}
		}
		clear(h.f.jobs)
		clear(h.f.root)
		return nil
	})
}
