package step

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// environ returns the environment of a job's script: the variables exported at submission, overridden by those that
// Slurm sets. Some of the worker's own variables are used if the job does not set them, for example the directory for
// temporary files, and the GPUs that the job may use. began is the time at which the job began.
func (o Order) environ(i instance, worker []string, began time.Time) []string {
	// Later variables override earlier ones: first the worker's are set, then the caller's, then Slurm's.
	vars := map[string]string{}
	set := func(all []string, which func(name string) bool) {
		for _, kv := range all {
			if name, value, ok := strings.Cut(kv, "="); ok && which(name) {
				vars[name] = value
			}
		}
	}
	set(worker, func(name string) bool { return slices.Contains(passed, name) })
	temporary := vars["TMPDIR"]
	set(o.Environment, func(name string) bool { return !slices.Contains(others, name) })
	if slices.Contains(o.Environment, scratch+"="+vars["TMPDIR"]) { // it belongs to the job in which sbatch was called
		vars["TMPDIR"] = temporary
	}
	if temporary != "" && vars["TMPDIR"] == temporary {
		vars[scratch] = temporary
	}
	// Slurm logs the user in: these variables are set even if no variables are exported.
	for name, value := range map[string]string{"USER": o.Facts.User, "LOGNAME": o.Facts.User, "SHELL": "/bin/sh"} {
		vars[name] = cmp.Or(vars[name], value)
	}
	maps.Copy(vars, o.told(i, began))
	vars["PATH"] = first(o.Folder, vars["PATH"])
	all := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		all = append(all, name+"="+vars[name])
	}
	return all
}

// gpus is the name of the variable that lists the GPUs that a program may use: only the worker knows its value.
const gpus = "CUDA_VISIBLE_DEVICES"

// others are variables of the caller that would refer to another job if sbatch was called inside a job.
var others = []string{
	gpus, corral.RunVariable, corral.IDVariable, corral.AttemptVariable, corral.CPUsVariable, corral.NoteVariable,
	corral.ElementVariable, corral.EntryVariable, corral.SubmitDirVariable, "CORRAL_JOB_TAG", "CORRAL_JOB_DIR",
	FolderVariable, scratch,
}

// FolderVariable is the name of the variable with which a job's commands find the folder of their shim.
const FolderVariable = "CORRAL_SHIM"

// scratch is the name of the variable that contains the path of a job's own directory for temporary files, which is
// removed with the job.
const scratch = "CORRAL_SCRATCH"

// passed are the variables of the worker that a job receives unless it sets them itself.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", gpus, corral.RunVariable, corral.IDVariable,
}

// first puts a folder at the beginning of a PATH, unless the PATH contains it.
func first(folder, path string) string {
	switch {
	case folder == "" || slices.Contains(strings.Split(path, ":"), folder):
		return path
	case path == "":
		return folder
	}
	return folder + ":" + path
}

// told returns the variables that Slurm sets for a job on one node.
func (o Order) told(i instance, began time.Time) map[string]string {
	f, id, tasks, cpus := o.Facts, strconv.FormatInt(i.id, 10), strconv.Itoa(o.Facts.Tasks), strconv.Itoa(o.Facts.CPUs)
	vars := map[string]string{
		"ENVIRONMENT": "BATCH", "HOSTNAME": i.host, FolderVariable: o.Folder,
		"SLURM_JOB_ID": id, "SLURM_JOBID": id, "SLURM_JOB_NAME": f.Name,
		"SLURM_JOB_USER": f.User, "SLURM_JOB_UID": strconv.Itoa(f.UID), "SLURM_JOB_PARTITION": f.Partition,
		"SLURM_CLUSTER_NAME": f.Cluster, "SLURM_SUBMIT_DIR": o.Place.Submitted, "SLURM_SUBMIT_HOST": o.Place.Host,
		"SLURM_JOB_NODELIST": i.host, "SLURM_NODELIST": i.host, "SLURMD_NODENAME": i.host,
		"SLURM_JOB_NUM_NODES": "1", "SLURM_NNODES": "1", "SLURM_NODEID": "0", "SLURM_PROCID": "0",
		"SLURM_LOCALID": "0", "SLURM_GTIDS": "0",
		"SLURM_NTASKS": tasks, "SLURM_NPROCS": tasks, "SLURM_TASKS_PER_NODE": tasks,
		"SLURM_CPUS_ON_NODE": cpus, "SLURM_JOB_CPUS_PER_NODE": cpus,
		"SLURM_JOB_START_TIME": strconv.FormatInt(began.Unix(), 10),
	}
	given := func(name string, n int64) { // only if it was given
		if n > 0 {
			vars[name] = strconv.FormatInt(n, 10)
		}
	}
	given("SLURM_CPUS_PER_TASK", int64(f.CPUsPerTask))
	given("SLURM_GPUS_ON_NODE", int64(f.GPUs))
	given("SLURM_RESTART_COUNT", int64(i.attempt-1))
	if o.Limits.Time > 0 {
		given("SLURM_JOB_END_TIME", began.Add(time.Duration(o.Limits.Time)).Unix())
	}
	if f.MemoryEach {
		given("SLURM_MEM_PER_CPU", f.MemoryMiB)
	} else {
		given("SLURM_MEM_PER_NODE", f.MemoryMiB)
	}
	if f.Account != "" {
		vars["SLURM_JOB_ACCOUNT"] = f.Account
	}
	if f.Export != "" {
		vars["SLURM_EXPORT_ENV"] = f.Export
	}
	if n := len(i.tasks); n > 0 {
		// Slurm sets a step even for lists without a constant step: the difference between the first two numbers.
		step := 1
		if n > 1 {
			step = i.tasks[1] - i.tasks[0]
		}
		maps.Copy(vars, map[string]string{
			"SLURM_ARRAY_JOB_ID": strconv.FormatInt(i.arrayID, 10), "SLURM_ARRAY_TASK_ID": i.number(),
			"SLURM_ARRAY_TASK_COUNT": strconv.Itoa(n), "SLURM_ARRAY_TASK_MIN": strconv.Itoa(i.tasks[0]),
			"SLURM_ARRAY_TASK_MAX": strconv.Itoa(i.tasks[n-1]), "SLURM_ARRAY_TASK_STEP": strconv.Itoa(step),
		})
	}
	return vars
}
