package nodecheck

import (
	"strconv"
	"strings"
)

// gpuVariables are the variables in which batch systems and CUDA name the GPUs that a job may use on this node, the
// most specific first: a step has no more GPUs than its job.
var gpuVariables = []string{"CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL"}

// GPUs returns the GPUs of this node that a job may use, in the format of CUDA_VISIBLE_DEVICES: those named in its
// environment, limited to the requested number if asked is positive. If the environment names none, the requested
// number of GPUs is returned, numbered from 0: a batch system that counts GPUs without naming them allocates whole
// nodes.
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

// devices parses a list of GPUs: numbers, ranges of numbers, or names such as GPU-8f2… and MIG-…. CUDA ignores the list
// from the first negative number on; Slurm writes NoDevFiles if it allocates no GPUs.
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

// Share returns the i-th of n parts of names, which are as equal as possible.
func Share(names []string, i, n int) []string {
	n = max(1, n)
	return names[i*len(names)/n : (i+1)*len(names)/n]
}

// FreeMiB returns the amount of data, in MiB, that an ordinary user may still write below dir, or 0 if it cannot be
// determined.
func FreeMiB(dir string) int {
	free, err := freeMiB(dir)
	if err != nil {
		return 0
	}
	return free
}
