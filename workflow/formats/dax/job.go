package dax

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/workflow"
)

// A job is the state of reading one task.
type job struct {
	workflow.Task
	at        workflow.Place
	runs      executable
	arguments words
	given     bool // the job has an argument, possibly an empty one
	measured  bool // the job has a runtime
	sized     map[sizedUse]bool
}

// A sizedUse identifies a use of a file whose size counts towards the bytes that the job read or wrote. A repeated use
// counts once.
type sizedUse struct {
	file   string
	writes bool
}

// job reads a job: its attributes, then its child elements.
func (r *reader) job(e xml.StartElement) error {
	j := &job{at: r.doc.here(), runs: executableOf(e)}
	j.ID, j.Name = attribute(e, "id"), j.runs.name
	err := r.attributes(j, e)
	if err == nil {
		err = r.doc.children(func(e xml.StartElement) error { return r.inJob(j, e) })
	}
	if err != nil {
		return err
	}
	if err := j.complete(r); err != nil {
		return err
	}
	if r.programs[j.runs] == "" {
		r.without[j.runs] = append(r.without[j.runs], int32(len(r.wf.Tasks)))
	}
	return r.builder.Add(j.Task, j.at)
}

// attributes reads the runtime and the cores of the generator's dialect. A runtime of 0 is valid.
func (r *reader) attributes(j *job, e xml.StartElement) error {
	if text := attribute(e, "runtime"); text != "" && !r.negative("a runtime", text) {
		d, err := seconds(text)
		if err != nil {
			return j.at.Errorf("task %q: runtime: %w", j.ID, err)
		}
		j.Runtime, j.Estimate, j.measured = d, d, true
	}
	if text := attribute(e, "cores"); text != "" {
		n, err := number(text, workflow.MaxCPUs)
		if err == nil && n < 1 {
			err = fmt.Errorf("%s, want 1 to %d", text, workflow.MaxCPUs)
		}
		if err != nil {
			return j.at.Errorf("task %q: cores: %w", j.ID, err)
		}
		j.CPUs = int(math.Ceil(n))
	}
	return nil
}

// negative reports whether a number is negative, and if so records that it is ignored. Published files contain a few
// negative numbers, because their numbers were drawn from an unbounded distribution.
func (r *reader) negative(what, text string) bool {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v < 0) || math.IsInf(v, 0) || !decimal(text) {
		return false
	}
	r.ignore(what + " below 0")
	return true
}

// inJob reads one child element of a job.
func (r *reader) inJob(j *job, e xml.StartElement) error {
	file := fileOf(e)
	if slices.Contains([]string{"stdin", "stdout", "stderr"}, e.Name.Local) && file == "" {
		return r.doc.here().Errorf("task %q: <%s> names no file", j.ID, e.Name.Local)
	}
	switch e.Name.Local {
	case "uses":
		return r.uses(j, e)
	case "argument":
		j.given = true
		return r.argument(j)
	case "profile":
		return r.profile(j, e)
	case "stdin":
		j.Stdin = file
		j.Inputs = append(j.Inputs, file)
	case "stdout":
		j.Stdout = file
		j.Outputs = append(j.Outputs, file)
	case "stderr":
		j.Stderr = file
		j.Outputs = append(j.Outputs, file)
	case "metadata":
	default:
		r.ignore("element <" + e.Name.Local + "> of a job")
	}
	return r.doc.skip()
}

// fileOf returns the file that an element names, in the form of either version 3 or version 2.
func fileOf(e xml.StartElement) string {
	if name := attribute(e, "name"); name != "" {
		return name
	}
	return attribute(e, "file")
}

// uses reads an element that describes how a job uses a file. A use without a direction, such as the transfer of a
// program, does not order tasks.
func (r *reader) uses(j *job, e xml.StartElement) error {
	at, file, link := r.doc.here(), fileOf(e), attribute(e, "link")
	if file == "" {
		return at.Errorf("task %q: <uses> names no file", j.ID)
	}
	reads, writes := false, false
	switch strings.ToLower(link) {
	case "input":
		reads = true
	case "output":
		writes = true
	case "inout", "checkpoint":
		reads, writes = true, true
	case "none":
	case "":
		if given(e, "link") {
			return at.Errorf("task %q: file %q: link is empty, want input, output, inout or none", j.ID, file)
		}
		if attribute(e, "executable") != "true" { // a transferred program has no link
			r.ignore("<uses> without a link")
		}
	default:
		return at.Errorf("task %q: file %q: link is %q, want input, output, inout or none", j.ID, file, link)
	}
	if reads {
		j.Inputs = append(j.Inputs, file)
	}
	if writes {
		j.Outputs = append(j.Outputs, file)
	}
	if text := attribute(e, "size"); text != "" && !r.negative("a size", text) {
		n, err := bytesOf(text)
		if err != nil {
			return at.Errorf("task %q: file %q: size: %w", j.ID, file, err)
		}
		if reads && j.counts(file, false) {
			j.ReadBytes = workflow.AddBytes(j.ReadBytes, n)
		}
		if writes && j.counts(file, true) {
			j.WrittenBytes = workflow.AddBytes(j.WrittenBytes, n)
		}
		r.sizes.Use(r.builder.Intern(file), n, writes, at)
	}
	return r.doc.skip()
}

// counts reports whether this is the first size that the job specifies for a file in that direction.
func (j *job) counts(file string, writes bool) bool {
	use := sizedUse{file, writes}
	if j.sized[use] {
		return false
	}
	if j.sized == nil {
		j.sized = make(map[sizedUse]bool)
	}
	j.sized[use] = true
	return true
}

// argument reads the arguments of a job, which consist of words and, between them, names of files.
func (r *reader) argument(j *job) error {
	return r.doc.element(func(token xml.Token) error {
		switch t := token.(type) {
		case xml.CharData:
			j.arguments.text(string(t))
		case xml.StartElement:
			j.arguments.name(fileOf(t))
			return r.doc.skip()
		}
		return nil
	})
}

// profile reads and applies a setting of a job, and records the setting if it is ignored.
func (r *reader) profile(j *job, e xml.StartElement) error {
	at := r.doc.here()
	space, key := strings.ToLower(attribute(e, "namespace")), attribute(e, "key")
	var text strings.Builder
	err := r.doc.element(func(token xml.Token) error {
		switch t := token.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.StartElement: // a file name, in version 2
			text.WriteString(fileOf(t))
			return r.doc.skip()
		}
		return nil
	})
	if err != nil {
		return err
	}
	known, err := j.set(space, key, strings.TrimSpace(text.String()))
	if err != nil {
		return at.Errorf("task %q: profile %s.%s: %w", j.ID, space, key, err)
	}
	if !known {
		r.ignore(fmt.Sprintf("profile %.40s.%.40s", space, key))
	}
	return nil
}

// set applies a profile; known is false if it is not supported.
func (j *job) set(space, key, value string) (known bool, err error) {
	if space == "env" {
		if j.Env == nil {
			j.Env = make(map[string]string)
		}
		j.Env[key] = value
		return true, nil
	}
	n := 0
	switch space + "." + strings.ToLower(key) {
	case "pegasus.runtime":
		if d, err := seconds(value); err != nil || !j.measured {
			j.Estimate, j.Instant = d, d == 0
			return true, err
		}
		return true, nil
	case "pegasus.cores", "condor.request_cpus":
		n, err = whole(value)
		j.CPUs = n
	case "pegasus.memory", "condor.request_memory":
		n, err = whole(value)
		j.MemoryMiB = n
	case "pegasus.diskspace":
		n, err = whole(value)
		j.DiskMiB = n
	case "condor.request_disk": // in KiB
		n, err = whole(value)
		j.DiskMiB = (n + 1<<10 - 1) >> 10
	case "pegasus.gpus", "condor.request_gpus":
		n, err = whole(value)
		j.GPUs = n
	case "pegasus.label":
		if value != "" {
			j.Control = &workflow.Control{Label: value}
		}
	case "dagman.retry":
		n, err = whole(value)
		j.Retries = &n
	default:
		return false, nil
	}
	return true, err
}

// complete determines the command, and keeps measurements only for a job with a runtime, because sizes of files alone
// do not mean that the job ran.
func (j *job) complete(r *reader) error {
	words, err := j.arguments.all()
	if err != nil {
		return j.at.Errorf("task %q: argument: %w", j.ID, err)
	}
	program := r.programs[j.runs]
	if program != "" || j.given {
		j.Argv = append([]string{r.builder.Intern(cmp.Or(program, j.runs.name))}, words...)
	}
	if j.measured {
		j.Instant = !j.Measured()
	} else {
		j.Execution = workflow.Execution{}
	}
	return nil
}

// seconds parses a duration of at most 146 years.
func seconds(text string) (time.Duration, error) {
	v, err := number(text, math.MaxInt64/float64(time.Second)/2)
	return time.Duration(math.Round(v * float64(time.Second))), err
}

// bytesOf parses a size. The format allows any number; fractions are rounded up.
func bytesOf(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return n, nil
	}
	v, err := number(text, 1<<62)
	return int64(math.Ceil(v)), err
}

// whole parses a non-negative integer for a need or a limit.
func whole(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%.40q is not an integer in range", text)
	}
	return n, nil
}

// decimal reports whether a number has the syntax of XML, i.e. does not use Go's extensions, such as 0x1p3 and 1_000.
func decimal(text string) bool { return !strings.ContainsAny(text, "xX_") }

// number parses a number from 0 to most.
func number(text string, most float64) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || !decimal(text) {
		return 0, fmt.Errorf("%.40q is not a number in range", text)
	}
	if v < 0 || v > most {
		return 0, fmt.Errorf("%.40s is negative or too large", text)
	}
	return v, nil
}
