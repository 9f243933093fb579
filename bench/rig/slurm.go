package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// A Slurm is a real Slurm on this machine, created by scripts/slurm.
type Slurm struct{ dir string }

// StartSlurm starts a Slurm with its files in dir, and puts its commands into this process's PATH. The caller must end
// it, even if there is an error.
func StartSlurm(ctx context.Context, dir string, nodes, cpus int) (Slurm, error) {
	s := Slurm{dir}
	cmd := exec.CommandContext(ctx, "scripts/slurm", "start", dir)
	cmd.Env = append(os.Environ(), "NODES="+strconv.Itoa(nodes), "CPUS="+strconv.Itoa(cpus))
	if out, err := cmd.CombinedOutput(); err != nil {
		return s, fmt.Errorf("scripts/slurm, which must be run in the project's folder: %w: %.500s", err, out)
	}
	settings, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		return s, err
	}
	_, rest, _ := strings.Cut(string(settings), "PATH='")
	bin, _, _ := strings.Cut(rest, "'")
	return s, errors.Join(os.Setenv("PATH", bin+":"+os.Getenv("PATH")),
		os.Setenv("SLURM_CONF", filepath.Join(dir, "slurm.conf")))
}

// End ends the Slurm.
func (s Slurm) End() error { return exec.Command("scripts/slurm", "stop", s.dir).Run() }
