package executor

import (
	"cmp"
	"os"
	"strconv"
	"strings"
)

// Libraries start one thread for each CPU of the machine unless a variable limits their number; on a worker full of
// tasks, the total would be the square of the right number.
var (
	// openMP are variables that default to OMP_NUM_THREADS, which comes first.
	openMP = []string{"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS",
		"NUMEXPR_NUM_THREADS"}
	// others are variables of runtimes and libraries with their own threads.
	others = []string{"GOMAXPROCS", "JULIA_NUM_THREADS", "NUMBA_NUM_THREADS", "PYTHON_CPU_COUNT", "RAYON_NUM_THREADS",
		"ROOT_MAX_THREADS"}
)

// threadsOf returns the variables that limit the threads of a task with the given CPUs: one thread for each CPU, or
// fewer if the worker's own environment sets fewer. A higher number, which may be meant for all tasks of the worker
// together, is not passed on. Variables that the task sets itself are kept; if it sets OMP_NUM_THREADS, the other
// OpenMP variables are not set.
func (x *Executor) threadsOf(cpus int, task []string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	all, ok := x.threads[cpus]
	if !ok {
		for _, name := range openMP {
			said := cmp.Or(os.Getenv(name), os.Getenv(openMP[0]))
			all = append(all, name+"="+strconv.Itoa(fewer(cpus, said)))
		}
		for _, name := range others {
			all = append(all, name+"="+strconv.Itoa(fewer(cpus, os.Getenv(name))))
		}
		x.threads[cpus] = all
	}
	for _, kv := range task {
		if strings.HasPrefix(kv, openMP[0]+"=") {
			return all[len(openMP):]
		}
	}
	return all
}

// fewer returns the number of threads for a task with the given CPUs; said is the value from the worker's environment.
// OpenMP accepts a list with a number for each level of nesting; the first one counts here.
func fewer(cpus int, said string) int {
	first, _, _ := strings.Cut(said, ",")
	if n, err := strconv.Atoi(strings.TrimSpace(first)); err == nil && n > 0 {
		return min(n, cpus)
	}
	return cpus
}
