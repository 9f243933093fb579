package slurm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
	"github.com/corral-pilot/corral/internal/shim/slurm/step"
)

// A launch is a request to srun.
type launch struct {
	directory string
	command   []string
}

// srunOptions are the options of srun. Other options are refused; most of these request properties that a single task
// has anyway, or features that no client needs.
var srunOptions = notation.Command[launch]{Name: "srun", Ordered: true, Options: []notation.Option[launch]{
	{Names: "account|A="},
	{Names: "chdir|D=", Set: notation.Text(func(l *launch) *string { return &l.directory })},
	{Names: "cpu-bind= cpus-per-task|c= distribution|m= exact exclusive?"},
	{Names: "export=", Set: only("the task has the job's environment", "ALL")},
	{Names: "gpus|G= gres= hint= immediate|I? jobid= job-name|J= kill-on-bad-exit|K? mem= mem-bind= mem-per-cpu= mpi="},
	{Names: "nodes|N= ntasks|n= ntasks-per-node=", Set: only("srun runs one task of the job in place", "1", "1-1")},
	{Names: "overlap oversubscribe|s partition|p= propagate? quiet|Q threads-per-core= time|t= unbuffered|u verbose|v"},
	{Names: "wait|W="},
}}

// only returns the effect of an option that is accepted with some values, which have no effect.
func only(why string, values ...string) notation.Effect[launch] {
	return func(_ *launch, g notation.Given) error {
		if !slices.Contains(values, g.Value) {
			return g.Refuse(why)
		}
		return nil
	}
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
	if cause, ok := errors.AsType[*exec.Error](err); ok {
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
	l.command, err = srunOptions.Read(&l, words)
	if err == nil && len(l.command) == 0 {
		err = errors.New("fatal: No command given to execute.") // Slurm's words
	}
	return l, err
}
