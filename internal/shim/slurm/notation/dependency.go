package notation

import (
	"errors"
	"strings"
)

// ErrDependency is Slurm's error for an invalid condition.
var ErrDependency = errors.New("Job dependency problem") // Slurm's wording

// maxDependencies is the maximum number of jobs for which one job may wait.
const maxDependencies = 10_000

// ParseDependencies parses the argument of --dependency: conditions such as "afterok:12:13_4", separated by commas if
// all must be met, or by question marks if one is enough. A job's id alone means that the job must have ended.
func ParseDependencies(text string) (Dependencies, error) {
	if text == "" || text == "0" { // no condition
		return Dependencies{}, nil
	}
	d := Dependencies{Any: strings.Contains(text, "?")} // a single ? turns every comma into a ?
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

// parseDependency parses one condition.
func parseDependency(text string) (Dependency, error) {
	word, list, _ := strings.Cut(text, ":")
	kind := DependencyKind(strings.ToLower(word))
	if _, ok := number(text); ok {
		kind, list = AfterAny, text // 12 is afterany:12
	}
	switch kind {
	case Singleton: // without jobs
		if list != "" {
			return Dependency{}, ErrDependency
		}
		return Dependency{When: Singleton}, nil
	case After, AfterAny, AfterOK, AfterNotOK: // with jobs
	case "aftercorr", "afterburstbuffer", "expand":
		return Dependency{}, &Unsupported{What: "--dependency=" + text,
			Why: "a job waits for whole jobs, or for tasks given by number (afterok:JOB_TASK)"}
	default:
		return Dependency{}, ErrDependency
	}
	d := Dependency{When: kind}
	for one := range strings.SplitSeq(list, ":") {
		if _, _, delayed := strings.Cut(one, "+"); delayed && kind == After {
			return Dependency{}, &Unsupported{What: "--dependency=" + text, Why: "conditions cannot have a delay"}
		}
		id, err := ParseJobID(one)
		if err != nil || strings.Contains(one, ".") {
			return Dependency{}, ErrDependency
		}
		d.Jobs = append(d.Jobs, id)
	}
	return d, nil
}

// String formats conditions as squeue shows them: with one job, or one task of an array, in each.
func (d Dependencies) String() string {
	separator := ","
	if d.Any {
		separator = "?"
	}
	var parts []string
	for _, one := range d.List {
		if one.When == Singleton {
			parts = append(parts, string(Singleton))
		}
		for _, id := range one.Jobs {
			tasks := []JobID{id}
			if id.Tasks != nil {
				tasks = nil
			}
			for _, task := range id.Tasks {
				tasks = append(tasks, JobID{Job: id.Job, Tasks: []int{task}})
			}
			for _, task := range tasks {
				parts = append(parts, string(one.When)+":"+task.String())
			}
		}
	}
	return strings.Join(parts, separator)
}
