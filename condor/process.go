package condor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pollEvery is the interval for checking a condition without notification. A check costs HTCondor 30 ms.
const pollEvery = 50 * time.Millisecond

// poll calls done until it returns true or ctx ends; the error is then that of ctx with the last one of done.
func poll(ctx context.Context, done func() (bool, error)) error {
	for {
		from := time.Now()
		ok, err := done()
		if ok {
			return nil
		}
		select {
		case <-time.After(max(pollEvery, 2*time.Since(from))): // so that polling does not slow down the awaited event
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("%w (last: %w)", ctx.Err(), err)
			}
			return ctx.Err()
		}
	}
}

// A process is a process found running. Its descriptor refers to it even if its pid is reused, so that a signal never
// hits a later process.
type process struct {
	pid int
	fd  int
}

// open returns the process pid if it runs and is accepts it; otherwise false.
func open(pid int, is func(pid int) bool) (process, bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return process{}, false
	}
	p := process{pid, fd}
	if p.ended() || !is(pid) {
		p.close()
		return process{}, false
	}
	return p, true
}

func (p process) close() { _ = unix.Close(p.fd) }

// ended reports whether the process has ended, even if it is still a zombie: an init may be slow to reap it.
func (p process) ended() bool {
	fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

// signal does nothing if the process has ended.
func (p process) signal(s unix.Signal) error {
	err := unix.PidfdSendSignal(p.fd, s, nil, 0)
	if err == unix.ESRCH {
		return nil
	}
	return err
}

// daemons are the programs of a pool that outlive their parent.
var daemons = []string{
	"condor_master", "condor_shared_port", "condor_collector", "condor_negotiator", "condor_schedd",
	"condor_startd", "condor_shadow", "condor_procd", "condor_gridmanager", "condor_starter", "condor_c-gahp",
	"condor_dagman",
}

// running returns the daemons whose configuration is the file config; the caller closes them. The shell of a user of
// the pool has the same environment, and is excluded.
func running(config string) []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // unreachable on Linux
	}
	var found []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := open(pid, func(pid int) bool { return isDaemon(pid, config) }); ok {
			found = append(found, p)
		}
	}
	return found
}

// isDaemon reports whether a process is a daemon whose configuration is the file config, judging by its program and its
// initial environment.
func isDaemon(pid int, config string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	exe, err := os.Readlink(filepath.Join(dir, "exe"))
	// An upgrade may have replaced the file.
	if err != nil || !slices.Contains(daemons, filepath.Base(strings.TrimSuffix(exe, " (deleted)"))) {
		return false
	}
	environ, err := os.ReadFile(filepath.Join(dir, "environ"))
	return err == nil && slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool {
		return string(v) == "CONDOR_CONFIG="+config
	})
}
