package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/bench/rig"
)

// cpus is the number of CPUs of each side, all on one host.
const cpus = 2

// A side is a set of Slurm commands with the environment in which they work. Its jobs run below dir.
type side struct {
	name  string
	dir   string
	bin   string   // directory of sbatch, squeue and the other commands
	env   []string // added to this process's environment
	peers string   // directory of Makeflow and Snakemake
	end   func() error
}

// command prepares a call of one of a side's commands, of Makeflow or of Snakemake, as a user would make it.
func (s *side) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	path := filepath.Join(s.bin, name)
	if name == "makeflow" || name == "snakemake" {
		path = filepath.Join(s.peers, name)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+s.bin+":"+s.peers+":"+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, s.env...)
	return cmd
}

// output runs a command and returns its standard output. An error contains the start of its standard error.
func (s *side) output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := s.command(ctx, name, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s: %s %s: %w: %.300s", s.name, name, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// deferring gives a Slurm the settings of large sites: it considers starting jobs every thirty seconds at most.
const deferring = "SchedulerParameters=defer,sched_min_interval=30000000"

// slurm is a one-node Slurm that scripts/slurm starts, with environment settings for that script and slurm.conf lines.
type slurm struct {
	name  string
	env   []string
	lines []string
}

// named returns it with a name and more lines.
func (k slurm) named(name string, lines ...string) slurm {
	k.name, k.lines = name, append([]string{"MaxJobCount=40000"}, lines...)
	return k
}

// start starts Slurm. The caller must call the side's end, even after an error.
func (k slurm) start(ctx context.Context, dir string) (*side, error) {
	state := filepath.Join(dir, "s")
	s := &side{name: k.name, dir: dir, env: []string{"SLURM_CONF=" + filepath.Join(state, "slurm.conf")},
		end: func() error { return exec.Command("scripts/slurm", "stop", state).Run() }}
	cmd := exec.CommandContext(ctx, "scripts/slurm", append([]string{"start", state}, k.lines...)...)
	cmd.Env = append(append(os.Environ(), "NODES=1", "CPUS="+strconv.Itoa(cpus)), k.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return s, fmt.Errorf("scripts/slurm, which must be run in the project's folder: %w: %.500s", err, out)
	}
	folder, err := exec.CommandContext(ctx, "scripts/slurm").Output()
	s.bin = filepath.Join(strings.TrimSpace(string(folder)), "bin")
	return s, err
}

// startShim starts a private corrald with a pilot on this machine, and creates a shim. The caller must call the side's
// end, even after an error.
func (b bench) startShim(ctx context.Context, dir string) (*side, error) {
	s := &side{name: "shim", dir: dir, bin: filepath.Join(dir, "shim"), end: func() error { return nil }}
	u, err := rig.NewUser(b.bin, dir)
	if err != nil {
		return s, err
	}
	s.env, s.end = u.Env[1:], u.End // without PATH, which command sets
	for _, args := range [][]string{
		{"up"},
		{"glidein", "create", "--site", "local", "--cpus", strconv.Itoa(cpus), "--wait"},
		{"shim", "slurm", s.bin},
	} {
		if _, err := u.Corral(ctx, args...); err != nil {
			return s, err
		}
	}
	return s, nil
}
