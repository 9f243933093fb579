package nodecheck

import (
	"strconv"
	"strings"
)

// gpuVariables are those in which batch systems and CUDA name the GPUs that a job may use on this node, the most exact
// first: a step has no more than its job.
var gpuVariables = []string{"CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL"}

// GPUs returns the GPUs of this node that a job may use, as CUDA_VISIBLE_DEVICES takes them: those that its environment
// names, at most as many as were asked for, if any were. If it names none, they are those that were asked for, numbered
// from 0: a batch system that counts GPUs without naming them gives whole nodes.
func GPUs(getenv func(string) string, asked int) []string {
	for _, variable := range gpuVariables {
		names := devices(getenv(variable))
		if len(names) > 0 && asked > 0 {
			names = names[:min(asked, len(names))]
		}
		if len(names) > 0 {
			return names
		}
	}
	var names []string
	for i := range asked {
		names = append(names, strconv.Itoa(i))
	}
	return names
}

// devices reads a list of GPUs: numbers, ranges of numbers, or names such as GPU-8f2… and MIG-…. CUDA takes no device
// from the first number below 0 on; Slurm says NoDevFiles where it gives none.
func devices(list string) (names []string) {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" || strings.HasPrefix(name, "-") || name == "NoDevFiles" {
			return names
		}
		from, to, _ := strings.Cut(name, "-")
		first, err1 := strconv.ParseUint(from, 10, 10)
		last, err2 := strconv.ParseUint(to, 10, 10)
		if err1 != nil || err2 != nil {
			names = append(names, name)
			continue
		}
		for i := first; i <= last; i++ {
			names = append(names, strconv.FormatUint(i, 10))
		}
	}
	return names
}

// Share returns the part of the names that is the i-th of n who share a node, as equal as they can be.
func Share(names []string, i, n int) []string {
	n = max(1, n)
	return names[i*len(names)/n : (i+1)*len(names)/n]
}

// FreeMiB is what an ordinary user may still write below dir; 0 if that cannot be found out.
func FreeMiB(dir string) int {
	free, err := freeMiB(dir)
	if err != nil {
		return 0
	}
	return free
}
