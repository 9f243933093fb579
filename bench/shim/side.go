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

// cpus is how many each side has, all in one place.
const cpus = 2

// A side is where Slurm's commands are, and what makes them work. Jobs run below dir.
type side struct {
	name  string
	dir   string
	bin   string   // sbatch, squeue and the like
	env   []string // beside this process's
	peers string   // where Makeflow and Snakemake are
	end   func() error
}

// command is one of a side's commands, Makeflow or Snakemake, as a user calls it.
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

// output runs a command, and returns what it prints. An error has what it complained about.
func (s *side) output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := s.command(ctx, name, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s: %s %s: %w: %.300s", s.name, name, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// deferring makes a Slurm as large sites have it: it thinks of starting jobs every thirty seconds at most.
const deferring = "SchedulerParameters=defer,sched_min_interval=30000000"

// slurm is a Slurm of one node as scripts/slurm makes it, with its settings there, and lines for slurm.conf.
type slurm struct {
	name  string
	env   []string
	lines []string
}

// named gives it a name, and more lines.
func (k slurm) named(name string, lines ...string) slurm {
	k.name, k.lines = name, append([]string{"MaxJobCount=40000"}, lines...)
	return k
}

// start starts it. The caller must end it, also if there is an error.
func (k slurm) start(ctx context.Context, dir string) (*side, error) {
	state := filepath.Join(dir, "s")
	s := &side{name: k.name, dir: dir, env: []string{"SLURM_CONF=" + filepath.Join(state, "slurm.conf")},
		end: func() error { return exec.Command("scripts/slurm", "stop", state).Run() }}
	cmd := exec.CommandContext(ctx, "scripts/slurm", append([]string{"start", state}, k.lines...)...)
	cmd.Env = append(append(os.Environ(), "NODES=1", "CPUS="+strconv.Itoa(cpus)), k.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return s, fmt.Errorf("scripts/slurm, which is run in the project's folder: %w: %.500s", err, out)
	}
	folder, err := exec.CommandContext(ctx, "scripts/slurm").Output()
	s.bin = filepath.Join(strings.TrimSpace(string(folder)), "bin")
	return s, err
}

// startShim starts a corrald of its own with a pilot on this machine, and makes a shim. The caller must end it, also if
// there is an error.
func (b bench) startShim(ctx context.Context, dir string) (*side, error) {
	s := &side{name: "shim", dir: dir, bin: filepath.Join(dir, "shim"), end: func() error { return nil }}
	u, err := rig.NewUser(b.bin, dir)
	if err != nil {
		return s, err
	}
	s.env, s.end = u.Env[1:], u.End // but for the PATH, which is the side's
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
