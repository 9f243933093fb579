package slurm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
	"github.com/corral-pilot/corral/internal/shim/slurm/step"
)

// launching parses srun's command line. Unknown options are refused; most known options request properties that a
// single task has anyway, or features that no client needs.
var launching = notation.Getopt{Command: "srun", Ordered: true, Options: notation.Options(
	"account|A= chdir|D= cpu-bind= cpus-per-task|c= distribution|m= exact exclusive? export= gpus|G= gres= hint= " +
		"immediate|I? jobid= job-name|J= kill-on-bad-exit|K? mem= mem-bind= mem-per-cpu= mpi= nodes|N= ntasks|n= " +
		"ntasks-per-node= overlap oversubscribe|s partition|p= propagate? quiet|Q threads-per-core= time|t= " +
		"unbuffered|u verbose|v wait|W=")}

// A launch is a request to srun.
type launch struct {
	directory string
	command   []string
}

// srun runs one task in place: inside a job it need not wait for resources.
func srun(c *call) error {
	l, err := parseRun(c.args)
	if err != nil {
		return err
	}
	// Slurm would submit a job, and forward the job's output. Clients do not call srun in this way: they already run in
	// a job.
	if os.Getenv("SLURM_JOB_ID") == "" || os.Getenv(step.FolderVariable) == "" {
		return &notation.Unsupported{What: "srun outside of a job", Why: "submit the command with " +
			"`sbatch --wait --wrap='COMMAND'`"}
	}
	if l.directory != "" {
		if err := os.Chdir(l.directory); err != nil {
			return fmt.Errorf("--chdir: %w", err)
		}
	}
	// The command replaces this process: it handles its own signals, exit status and limits, and no process waits for
	// it.
	path, err := exec.LookPath(l.command[0])
	if err == nil {
		err = syscall.Exec(path, l.command, stepEnviron(os.Environ()))
	}
	var cause *exec.Error
	if errors.As(err, &cause) {
		err = cause.Err
	}
	fmt.Fprintf(c.Err, "slurmstepd: error: execve(): %s: %v\n", l.command[0], err)
	return exit(int(syscall.ENOENT)) // Slurm's exit status
}

// stepEnviron adds the variables that a step of Slurm has in addition to its job's.
func stepEnviron(env []string) []string {
	return append(env, "SLURM_STEP_ID=0", "SLURM_STEPID=0", "SLURM_STEP_NUM_TASKS=1", "SLURM_STEP_NUM_NODES=1",
		"SLURM_STEP_TASKS_PER_NODE=1", "SLURM_STEP_NODELIST="+os.Getenv("SLURM_NODELIST"))
}

// parseRun parses srun's command line. The first word that is not an option begins the command.
func parseRun(words []string) (l launch, err error) {
	given, rest, err := launching.Parse(words)
	if err != nil {
		return l, err
	}
	for _, g := range given {
		shown := "--" + g.Name + "=" + g.Value
		switch g.Name {
		case "ntasks", "nodes", "ntasks-per-node":
			if g.Value != "1" && g.Value != "1-1" {
				return l, &notation.Unsupported{What: shown, Why: "srun runs one task of the job in place"}
			}
		case "export":
			if g.Value != "ALL" {
				return l, &notation.Unsupported{What: shown, Why: "the task has the job's environment"}
			}
		case "chdir":
			l.directory = g.Value
		}
	}
	if l.command = rest; len(rest) == 0 {
		err = errors.New("fatal: No command given to execute.") // Slurm's words
	}
	return l, err
}
