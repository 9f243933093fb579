package condorworker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// A CondorSlot describes the slot in which the program of an HTCondor job runs.
type CondorSlot struct {
	Dir    string // the job's own directory
	Worker string // the pool's worker with the slot
	Host   string // for display
	corral.Resources
	Ends       time.Time // when the glidein ends; zero if unknown
	Speed      corral.Speed
	Home       []string // addresses of corrald's worker port
	HomeDigest string   // of its certificate
}

// Enter prepares the program of an HTCondor job: it finds the slot, and sets variables that HTCondor omits from a job's
// environment. The returned context also ends when the job's starter has ended.
func Enter(ctx context.Context) (context.Context, context.CancelFunc, CondorSlot, error) {
	dir, err := sandbox()
	if err != nil {
		return nil, nil, CondorSlot{}, err
	}
	s, err := slotOf(os.Getenv("_CONDOR_MACHINE_AD"))
	if err == nil {
		err = home()
	}
	if err != nil {
		return nil, nil, s, err
	}
	s.Dir = dir
	ctx, cancel := context.WithCancel(ctx)
	go leaveWithParent(ctx, cancel)
	return ctx, cancel, s, nil
}

// sandbox returns the folder that HTCondor created for the job.
func sandbox() (dir string, err error) {
	if dir = os.Getenv("_CONDOR_SCRATCH_DIR"); dir == "" {
		err = errors.New("this runs inside an HTCondor job only: _CONDOR_SCRATCH_DIR is not set")
	}
	return dir, err
}

// parentEvery is the interval at which a job checks whether its starter is running.
const parentEvery = time.Second

// leaveWithParent cancels when the parent has ended: a starter that is killed does not end its job, and the run will
// repeat the tasks elsewhere.
func leaveWithParent(ctx context.Context, cancel context.CancelFunc) {
	parent := os.Getppid()
	for os.Getppid() == parent && retry.For(ctx, parentEvery) {
	}
	cancel()
}

// slotOf reads the ad of a slot.
func slotOf(file string) (s CondorSlot, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return s, fmt.Errorf("reading the worker's ad: %w", err)
	}
	var ends int
	var addresses string
	numbers := map[string]*int{"Cpus": &s.CPUs, "Memory": &s.MemoryMiB, "GPUs": &s.GPUs, "CorralEnd": &ends}
	texts := map[string]*string{
		workerAttribute: &s.Worker, "CorralHost": &s.Host,
		jobfiles.HomeAttribute: &addresses, jobfiles.HomeDigestAttribute: &s.HomeDigest,
	}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		name = strings.TrimSpace(name)
		switch v := classad.ParseOld(strings.TrimSpace(value)).(type) {
		case float64:
			if speed := corral.Speed(v); name == jobfiles.SpeedAttribute && speed.Valid() {
				s.Speed = speed
			}
		case string:
			if to := texts[name]; to != nil {
				*to = v
			}
		case int64:
			if to := numbers[name]; to != nil && v >= 0 && v <= math.MaxInt32 {
				*to = int(v)
			}
		}
	}
	if s.Worker == "" {
		return s, fmt.Errorf("the worker's ad %s does not name the worker (%s)", file, workerAttribute)
	}
	s.Home = strings.Fields(addresses)
	if ends > 0 {
		s.Ends = time.Unix(int64(ends), 0)
	}
	return s, nil
}

// home sets variables that HTCondor omits from a job's environment and that a worker of an embedded cluster sets.
func home() error {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return nil // a user without an account entry has no home either
	}
	for name, value := range map[string]string{"HOME": u.HomeDir, "USER": u.Username} {
		if os.Getenv(name) == "" {
			err = errors.Join(err, os.Setenv(name, value))
		}
	}
	return err
}
