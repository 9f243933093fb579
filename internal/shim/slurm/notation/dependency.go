package notation

import (
	"errors"
	"strings"
)

// ErrDependency has Slurm's words for a condition that cannot be.
var ErrDependency = errors.New("Job dependency problem") // Slurm's words

// maxDependencies bounds how many jobs one job may wait for.
const maxDependencies = 10_000

// ParseDependencies reads what follows --dependency: conditions like "afterok:12:13_4" with commas between them, if all
// must hold, or question marks, if one is enough. A job's id alone means that it must have ended.
func ParseDependencies(text string) (Dependencies, error) {
	if text == "" || text == "0" { // no condition
		return Dependencies{}, nil
	}
	d := Dependencies{Any: strings.Contains(text, "?")} // one ? makes any comma one, too
	jobs := 0
	for condition := range strings.SplitSeq(strings.ReplaceAll(text, "?", ","), ",") {
		one, err := parseDependency(condition)
		if err != nil {
			return Dependencies{}, err
		}
		for _, id := range one.Jobs {
			jobs += max(1, len(id.Tasks))
		}
		if jobs > maxDependencies {
			return Dependencies{}, ErrDependency
		}
		d.List = append(d.List, one)
	}
	return d, nil
}

// parseDependency reads one condition.
func parseDependency(text string) (Dependency, error) {
	word, list, _ := strings.Cut(text, ":")
	kind := DependencyKind(strings.ToLower(word))
	if _, ok := number(text); ok {
		kind, list = AfterAny, text // 12 is afterany:12
	}
	switch kind {
	case Singleton: // of no job
		if list != "" {
			return Dependency{}, ErrDependency
		}
		return Dependency{When: Singleton}, nil
	case After, AfterAny, AfterOK, AfterNotOK: // of jobs
	case "aftercorr", "afterburstbuffer", "expand":
		return Dependency{}, &Unsupported{What: "--dependency=" + text,
			Why: "a job waits for whole jobs, or for tasks by their numbers (afterok:JOB_TASK)"}
	default:
		return Dependency{}, ErrDependency
	}
	d := Dependency{When: kind}
	for one := range strings.SplitSeq(list, ":") {
		if _, _, delayed := strings.Cut(one, "+"); delayed && kind == After {
			return Dependency{}, &Unsupported{What: "--dependency=" + text, Why: "a condition has no delay here"}
		}
		id, err := ParseJobID(one)
		if err != nil || strings.Contains(one, ".") {
			return Dependency{}, ErrDependency
		}
		d.Jobs = append(d.Jobs, id)
	}
	return d, nil
}

// Text writes conditions as squeue shows them, with a suffix behind each: "(unfulfilled)". A whole array has "_*"
// behind its id, which array must tell from other jobs.
func (d Dependencies) Text(suffix string, array func(job int) bool) string {
	separator := ","
	if d.Any {
		separator = "?"
	}
	var parts []string
	for _, one := range d.List {
		if one.When == Singleton {
			parts = append(parts, string(Singleton)+suffix)
		}
		for _, id := range one.Jobs {
			for _, name := range names(id, array) {
				parts = append(parts, string(one.When)+":"+name+suffix)
			}
		}
	}
	return strings.Join(parts, separator)
}

// names lists the tasks of an array one by one, and an array without tasks by a star.
func names(id JobID, array func(job int) bool) []string {
	if id.Tasks == nil && array(id.Job) {
		return []string{id.String() + "_*"}
	}
	if id.Tasks == nil {
		return []string{id.String()}
	}
	var list []string
	for _, task := range id.Tasks {
		list = append(list, JobID{Job: id.Job, Tasks: []int{task}}.String())
	}
	return list
}
