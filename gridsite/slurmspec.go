package gridsite

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// options are the arguments of sbatch for a job. Those that not every version has are added at the site.
func (s *Slurm) options(spec JobSpec) ([]string, error) {
	if err := errors.Join(s.dirs().check(spec.Tag), checkSpec(spec), checkSlurm(spec)); err != nil {
		return nil, err
	}
	options := []string{
		"--job-name=" + spec.Tag,
		"--comment=" + spec.Tag,
		"--nodes=" + strconv.Itoa(max(spec.Hosts, 1)),
		"--ntasks-per-node=1",
		"--cpus-per-task=" + strconv.Itoa(max(spec.CPUs, 1)),
		"--export=ALL",
		"--output=" + slurmPath(path.Join(JobDir(s.root, spec.Tag), controlDir, "log")),
		"--open-mode=append",
	}
	add := func(name, value string) {
		if value != "" {
			options = append(options, "--"+name+"="+value)
		}
	}
	add("time", timeLimit(spec.Walltime))
	if spec.MemoryMiB > 0 {
		add("mem", strconv.Itoa(spec.MemoryMiB)+"M")
	}
	add("partition", spec.Queue)
	add("account", spec.Account)
	add("qos", spec.QOS)
	add("constraint", spec.Constraint)
	add("exclude", strings.Join(spec.Exclude, ","))
	return options, nil
}

// slurmPath is a path for --output, in which Slurm replaces what follows a '%', and drops backslashes.
func slurmPath(name string) string {
	if strings.Contains(name, `\`) {
		return "/dev/null"
	}
	return strings.ReplaceAll(name, "%", "%%")
}

// timeLimit is D-HH:MM:SS. Slurm counts whole minutes and rounds up; to the second the batch script keeps to it.
func timeLimit(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	n := int64((d + time.Second - 1) / time.Second)
	return fmt.Sprintf("%d-%02d:%02d:%02d", n/86400, n/3600%24, n/60%60, n%60)
}

// notOneJob are options with which sbatch does not queue one job on this cluster and return: they may stand anywhere in
// a line, and be cut short.
var notOneJob = regexp.MustCompile(`(^|\s)(-a|--ar|-W|--wait(=|\s|$)|--te|-M|--clusters|hetjob|packjob)`)

// checkSlurm looks at what becomes an argument or a line of a script: nothing in it may begin another one.
func checkSlurm(spec JobSpec) error {
	var errs []error
	word := func(place, value string) {
		if strings.ContainsAny(value, "\n\r\x00") {
			errs = append(errs, corral.ErrorAt(corral.Invalid, place, "%q: no newline may be in it", value))
		}
	}
	word("queue", spec.Queue)
	word("account", spec.Account)
	word("qos", spec.QOS)
	word("constraint", spec.Constraint)
	for i, line := range spec.Lines {
		place := fmt.Sprintf("site_options[%d]", i)
		word(place, line)
		comment := strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "#SBATCH")
		if option := notOneJob.FindString(line); option != "" && !comment {
			errs = append(errs, corral.ErrorAt(corral.Invalid, place, "%q: a pilot is one job of this cluster, which %s would change", line, strings.TrimSpace(option)))
		}
	}
	for i, node := range spec.Exclude {
		if !nodeName.MatchString(node) {
			errs = append(errs, corral.ErrorAt(corral.Invalid, fmt.Sprintf("exclude[%d]", i), "%q is no name of a node", node))
		}
	}
	if spec.GPUs < 0 {
		errs = append(errs, corral.ErrorAt(corral.Invalid, "gpus", "%d is negative", spec.GPUs))
	}
	return errors.Join(errs...)
}

var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// files is what stands in the job's directory before the start.
func (s *Slurm) files(spec JobSpec) map[string][]byte {
	files := jobFiles(spec)
	files[controlDir+"/run"] = []byte(slurmScripts.run)
	files[controlDir+"/id"] = unknown("-")
	files[controlDir+"/batch"] = s.batchScript(spec)
	return files
}

// batchScript runs run.sh. A line of the user's is a comment to the shell, and an option to sbatch.
func (s *Slurm) batchScript(spec JobSpec) []byte {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for _, line := range spec.Lines {
		if !strings.HasPrefix(line, "#") {
			b.WriteString("#SBATCH ")
		}
		b.WriteString(line + "\n")
	}
	dir := JobDir(s.root, spec.Tag)
	b.WriteString("exec " + QuoteArgv([]string{"/bin/sh", path.Join(dir, controlDir, "run"), dir, seconds(spec.Walltime), seconds(s.grace)}) + "\n")
	return []byte(b.String())
}
