package executor

import (
	"cmp"
	"os"
	"strconv"
	"strings"
)

// Libraries start as many threads as the machine has cpus unless a variable tells them otherwise; with a worker full of
// tasks, that is the square of what there should be.
var (
	// openMP are those that, without a value of their own, take OMP_NUM_THREADS, which comes first.
	openMP = []string{"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS",
		"NUMEXPR_NUM_THREADS"}
	// others are of runtimes and libraries that have threads of their own.
	others = []string{"GOMAXPROCS", "JULIA_NUM_THREADS", "NUMBA_NUM_THREADS", "PYTHON_CPU_COUNT", "RAYON_NUM_THREADS",
		"ROOT_MAX_THREADS"}
)

// threadsOf returns the variables that say how many threads a task with so many cpus may have: as many, or fewer if the
// worker's own environment says fewer. More, which the worker may have been given for all its tasks together, is not
// passed on. What the task sets itself stays; if that is OMP_NUM_THREADS, libraries that heed it are told nothing else.
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

// fewer is a number of threads for a task with so many cpus, of which the worker's environment says something. OpenMP
// takes a list, a number for each level of nesting, of which the first counts here.
func fewer(cpus int, said string) int {
	first, _, _ := strings.Cut(said, ",")
	if n, err := strconv.Atoi(strings.TrimSpace(first)); err == nil && n > 0 {
		return min(n, cpus)
	}
	return cpus
}
