package executor

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/corral-pilot/corral"
)

// environ returns the task's environment and its PATH. The worker's own environment is not passed on, so that a task
// behaves the same on every worker. The task's variables override the base, and our variables override the task's,
// except for TMPDIR and the numbers of threads, which the task may set.
func (e *Attempt) environ() (env []string, path string) {
	ours := []string{
		corral.RunVariable + "=" + strconv.FormatInt(int64(e.job.Run), 10),
		corral.IDVariable + "=" + e.task.ID,
		corral.AttemptVariable + "=" + strconv.Itoa(e.task.Attempt),
		corral.CPUsVariable + "=" + strconv.Itoa(e.job.CPUs),
		"TMPDIR=" + cmp.Or(e.tmp.path, e.dir.Path),
	}
	threads := e.x.threadsOf(e.job.CPUs, e.task.Env)
	env = make([]string, 0, len(ours)+2+len(e.x.base)+len(e.task.Env)+len(threads))
	env = append(env, ours[:4]...)
	if e.task.Note != "" {
		env = append(env, corral.NoteVariable+"="+e.dir.Path+"/"+e.task.Note)
	}
	if e.gpus != nil {
		env = append(env, visibleGPUs+"="+*e.gpus)
	}
	for _, from := range [][]string{e.task.Env, ours[4:], threads, e.x.base} {
		for _, kv := range from {
			if !defines(env, kv) {
				env = append(env, kv)
			}
		}
	}
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = value
		}
	}
	return env, path
}

// visibleGPUs is the variable that lists the GPUs of the machine that a process may use, for CUDA and compatible
// libraries.
const visibleGPUs = "CUDA_VISIBLE_DEVICES"

// ShowGPUs restricts the task to these GPUs of the machine. Without a call the task sees all GPUs that the batch system
// lets the worker see. ShowGPUs must be called before the attempt runs.
func (e *Attempt) ShowGPUs(names []string) {
	list := strings.Join(names, ",")
	e.gpus = &list
}

// passGPUs restricts the task to the GPUs that this process was given, if its environment lists them.
func (e *Attempt) passGPUs() {
	if list, ok := os.LookupEnv(visibleGPUs); ok && e.job.GPUs > 0 {
		e.gpus = &list
	}
}

// defines reports whether env has a value for the name of kv.
func defines(env []string, kv string) bool {
	name, _, _ := strings.Cut(kv, "=")
	name += "="
	return slices.ContainsFunc(env, func(have string) bool { return strings.HasPrefix(have, name) })
}

// BaseEnv returns the part of the worker's environment that every task inherits: the search path, the user, the
// language of messages, and the variables that identify the processes of a batch job at the site.
func BaseEnv() []string {
	var env []string
	for _, kv := range [][2]string{
		{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/"}, {"USER", ""}, {"LANG", "C.UTF-8"},
		{"CORRAL_JOB_TAG", ""}, {"CORRAL_JOB_DIR", ""},
	} {
		if value := cmp.Or(os.Getenv(kv[0]), kv[1]); value != "" {
			env = append(env, kv[0]+"="+value)
		}
	}
	return env
}

// program returns the executable for a task's first argument. The pilot program is the executable that runs this
// executor.
func (x *Executor) program(name, path string) (string, error) {
	if name == corral.PilotProgram {
		return os.Executable()
	}
	return x.lookPath(name, path)
}

// usable returns an error that explains why a task cannot run in the directory that its user specified. An empty dir is
// usable.
func usable(dir string) error {
	var st syscall.Stat_t
	if dir == "" {
		return nil
	}
	if err := syscall.Stat(dir, &st); err != nil {
		return fmt.Errorf("the directory %q, where the task is to run, is not available on its worker: %w", dir, err)
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return fmt.Errorf("%q, where the task is to run, is not a directory on its worker", dir)
	}
	return nil
}

// lookPath finds a command. A name with a slash is absolute or relative to the task's directory. Results are cached:
// thousands of tasks run the same few programs, and each directory of PATH costs a system call.
func (x *Executor) lookPath(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if found, ok := x.paths[path+"\x00"+name]; ok {
		return found, nil
	}
	const execute = 0x1
	for dir := range strings.SplitSeq(path, ":") {
		file := dir + "/" + name
		var st syscall.Stat_t
		if dir != "" && syscall.Stat(file, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG &&
			syscall.Access(file, execute) == nil {
			x.paths[path+"\x00"+name] = file
			return file, nil
		}
	}
	return "", corral.Errorf(corral.NotFound, "command %q is not in the %d folders of the task's PATH", name,
		1+strings.Count(path, ":"))
}

// forget drops a cached result of lookPath after the command could not be executed: it may have been removed or
// replaced.
func (x *Executor) forget(name, path string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.paths, path+"\x00"+name)
}
