package condorworker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/embedded/parcel"
	"github.com/corral-pilot/corral/internal/pause"
)

// TaskCommand is the argument with which an HTCondor job starts this program.
const TaskCommand = "task"

// Task is the program of an HTCondor job: it runs the tasks that the job carries, in the folder that HTCondor made for
// it, as a worker of a personal cluster does. HTCondor brings back what it leaves there.
func Task(ctx context.Context) error {
	dir := os.Getenv("_CONDOR_SCRATCH_DIR")
	if dir == "" {
		return errors.New("pilot task runs inside an HTCondor job only: _CONDOR_SCRATCH_DIR is not set")
	}
	// HTCondor holds a job if a file that it should bring back is missing; so there is one, whatever happens.
	if err := os.Mkdir(filepath.Join(dir, parcel.OutDir), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, parcel.ResultFile), nil, 0o600); err != nil {
		return err
	}
	worker, slot, err := slotOf(os.Getenv("_CONDOR_MACHINE_AD"))
	if err != nil {
		return err
	}
	if err := home(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go leaveWithParent(ctx, cancel)
	return parcel.Execute(ctx, dir, worker, slot)
}

// parentEvery is how often Task looks whether the job's starter is still there.
const parentEvery = time.Second

// leaveWithParent cancels when the parent is gone: a starter that was killed does not end its job, and the run will
// have the tasks done elsewhere.
func leaveWithParent(ctx context.Context, cancel context.CancelFunc) {
	parent := os.Getppid()
	for os.Getppid() == parent && pause.For(ctx, parentEvery) {
	}
	cancel()
}

// slotOf reads the worker's id, and what the job may have of it, from the ad of its slot.
func slotOf(file string) (worker string, slot corral.Resources, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", slot, fmt.Errorf("reading the worker's ad: %w", err)
	}
	numbers := map[string]*int{"Cpus": &slot.CPUs, "Memory": &slot.MemoryMiB}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		name = strings.TrimSpace(name)
		switch v := classad.ParseOld(strings.TrimSpace(value)).(type) {
		case string:
			if name == workerAttribute {
				worker = v
			}
		case int64:
			if to := numbers[name]; to != nil && v >= 0 && v <= math.MaxInt32 {
				*to = int(v)
			}
		}
	}
	if worker == "" {
		return "", slot, fmt.Errorf("the worker's ad %s does not name the worker (%s)", file, workerAttribute)
	}
	return worker, slot, nil
}

// home sets the variables that HTCondor leaves out of a job's environment and that a worker of a personal cluster has.
func home() error {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return nil // a user without a name has no home either
	}
	for name, value := range map[string]string{"HOME": u.HomeDir, "USER": u.Username} {
		if os.Getenv(name) == "" {
			err = errors.Join(err, os.Setenv(name, value))
		}
	}
	return err
}
