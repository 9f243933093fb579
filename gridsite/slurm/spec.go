package slurm

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/internal/kit/shell"
)

// directive is the beginning of a line of a batch script that sbatch parses.
const directive = "#SBATCH"

// optionsOf returns sbatch's arguments for a job. The tag is the job's name, under which squeue lists it, and also its
// comment, which is preserved if a site changes names. One task per node is started; the pilot starts all other
// processes within it. Options that some versions do not support are added at the site (offers.sh).
func optionsOf(b *Batch, spec gridsite.JobSpec) ([]string, error) {
	if err := errors.Join(b.CheckSpec(spec), check(spec)); err != nil {
		return nil, err
	}
	options := []string{
		"--job-name=" + spec.Tag,
		"--comment=" + spec.Tag,
		"--nodes=" + strconv.Itoa(max(spec.Hosts, 1)),
		"--ntasks-per-node=1",
		"--cpus-per-task=" + strconv.Itoa(max(spec.CPUs, 1)),
		"--export=ALL",
		"--output=" + outputPath(path.Join(jobdir.Path(b.Root(), spec.Tag), jobdir.Control, "log")),
		"--open-mode=append",
	}
	add := func(name, value string) {
		if value != "" {
			options = append(options, "--"+name+"="+value)
		}
	}
	if spec.Hosts > 1 { // a pilot survives the failure of any node but the first, which runs the script
		options = append(options, "--no-kill")
	}
	add("time", timeLimit(spec.Walltime))
	if spec.MemoryMiB > 0 {
		add("mem", strconv.Itoa(spec.MemoryMiB)+"M")
	}
	system, err := corral.BatchSystemNamed("slurm")
	if err != nil {
		return nil, err // unreachable: the table contains every dialect
	}
	for _, given := range spec.Given() {
		if flag := system.Options[given.Name]; flag != directive {
			options = append(options, flag+"="+given.Value)
		}
	}
	add("exclude", strings.Join(spec.Exclude, ","))
	return options, nil
}

// outputPath returns a path for --output, in which Slurm expands '%'. Slurm also removes backslashes, so for a path
// with a backslash the batch script's own output is discarded; the job's output is kept.
func outputPath(name string) string {
	if strings.Contains(name, `\`) {
		return "/dev/null"
	}
	return strings.ReplaceAll(name, "%", "%%")
}

// timeLimit formats D-HH:MM:SS. Slurm rounds up to whole minutes; the batch script enforces the time to the second.
func timeLimit(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	n := int64((d + time.Second - 1) / time.Second)
	return fmt.Sprintf("%d-%02d:%02d:%02d", n/86400, n/3600%24, n/60%60, n%60)
}

// check validates values that become arguments or lines of a script, so that no value can begin another argument or
// line. It also rejects options with which sbatch would create anything other than one job, because the result could
// not be followed.
func check(spec gridsite.JobSpec) error {
	var errs []error
	for _, given := range spec.Given() {
		if strings.ContainsAny(given.Value, "\n\r\x00") {
			errs = append(errs, corral.ErrorAt(corral.Invalid, given.Name, "%q: it must not contain a newline",
				given.Value))
		}
	}
	for i, line := range spec.SiteOptions {
		place := fmt.Sprintf("site_options[%d]", i)
		if option := notOneJob(line); option != "" {
			errs = append(errs, corral.ErrorAt(corral.Invalid, place,
				"%q: %s is not allowed, because a pilot must be one job of this cluster", line, option))
		}
	}
	for i, node := range spec.Exclude {
		if !nodeName.MatchString(node) {
			errs = append(errs, corral.ErrorAt(corral.Invalid, fmt.Sprintf("exclude[%d]", i),
				"%q is not the name of a node", node))
		}
	}
	if spec.GPUs < 0 {
		errs = append(errs, corral.ErrorAt(corral.Invalid, "gpus", "%d is negative", spec.GPUs))
	}
	return errors.Join(errs...)
}

var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// filesOf returns the content of the job's directory before the start: the files of every dialect, Slurm's id of the
// job, and the batch script.
func filesOf(b *Batch, spec gridsite.JobSpec) map[string][]byte {
	files := b.Files(spec, runScript)
	files[jobdir.Control+"/id"] = jobdir.Unknown("-")
	files[jobdir.Control+"/batch"] = b.batchScript(spec)
	return files
}

// batchScript returns a script that runs run.sh. A line from the user is a comment for the shell and an option for
// sbatch.
func (b *Batch) batchScript(spec gridsite.JobSpec) []byte {
	var text strings.Builder
	text.WriteString("#!/bin/sh\n")
	for _, line := range spec.SiteOptions {
		if !strings.HasPrefix(line, "#") {
			text.WriteString(directive + " ")
		}
		text.WriteString(line + "\n")
	}
	dir := jobdir.Path(b.Root(), spec.Tag)
	text.WriteString("exec " + shell.Line([]string{"/bin/sh", path.Join(dir, jobdir.Control, "run"), dir,
		jobdir.Seconds(spec.Walltime), jobdir.Seconds(b.grace)}) + "\n")
	return []byte(text.String())
}
