package gridsitetest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/programs"
)

// A Slurm is a real cluster on this machine, created by scripts/slurm. All of its daemons and nodes are processes on
// this machine, so that a test's actions on them do not affect anything else.
type Slurm struct {
	Dir    string
	script string
	bin    string // Slurm's commands
}

// StartSlurm starts a cluster of 4 nodes with 2 cpus each, with these additional lines in its slurm.conf; environment
// holds variables for scripts/slurm. In addition to other partitions, the cluster has a partition "held", which accepts
// jobs but starts none. All users may use the cluster. The caller must stop it.
func StartSlurm(environment []string, lines ...string) (*Slurm, error) {
	root, err := programs.Root()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/tmp", "slurm") // sockets have short names
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	s := &Slurm{Dir: dir, script: filepath.Join(root, "scripts", "slurm")}
	lines = append([]string{"PartitionName=held Nodes=ALL State=DOWN"}, lines...)
	if err := s.run(environment, append([]string{"start", dir}, lines...)...); err != nil {
		return nil, fmt.Errorf("%w%w", err, s.Stop())
	}
	settings, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(settings), "PATH='")
	s.bin, _, _ = strings.Cut(rest, "'")
	return s, nil
}

// run runs scripts/slurm; its error contains the script's error messages.
func (s *Slurm) run(environment []string, args ...string) error {
	cmd := exec.Command(s.script, args...)
	cmd.Env = append(os.Environ(), environment...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("scripts/slurm %s: %w\n%s", strings.Join(args, " "), err, &said)
	}
	return nil
}

// Start starts the daemons of the cluster that were killed.
func (s *Slurm) Start() error { return s.run(nil, "start", s.Dir) }

// Stop ends the cluster with all of its jobs, and removes its directory.
func (s *Slurm) Stop() error {
	if err := s.run(nil, "stop", s.Dir); err != nil {
		return err
	}
	return os.RemoveAll(s.Dir)
}

// Environ returns the variables that a shell needs to find the cluster.
func (s *Slurm) Environ() []string {
	return []string{"PATH=" + s.bin + ":" + os.Getenv("PATH"), "SLURM_CONF=" + filepath.Join(s.Dir, "slurm.conf")}
}

// Command returns one of Slurm's commands for this cluster.
func (s *Slurm) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Env = append(os.Environ(), s.Environ()...)
	return cmd
}

// On returns a head node of the cluster that is reached through conn.
func (s *Slurm) On(conn gridsite.Conn) gridsite.Conn { return headNode{conn, s.Environ()} }

// headNode sets, for each command, the variables with which Slurm's commands find the cluster, as a login at a real
// head node would.
type headNode struct {
	gridsite.Conn
	environment []string
}

func (h headNode) Run(ctx context.Context, cmd gridsite.Command) (gridsite.Result, error) {
	cmd.Argv = append(append([]string{"env"}, h.environment...), cmd.Argv...)
	return h.Conn.Run(ctx, cmd)
}

// EndController ends slurmctld but leaves the nodes and their jobs running. SIGTERM ends slurmctld as in an orderly
// restart; SIGKILL prevents it from saving its state.
func (s *Slurm) EndController(signal syscall.Signal) error {
	text, err := os.ReadFile(filepath.Join(s.Dir, "run", "slurmctld.pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return nil
		}
		<-tick.C
	}
	return fmt.Errorf("slurmctld %d does not end", pid)
}
