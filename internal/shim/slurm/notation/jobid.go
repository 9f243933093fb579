package notation

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxTask is the highest number of an array's task, and the maximum number of tasks in a list of jobs.
const MaxTask = 99_999

// ErrJobID is Slurm's error for an invalid list of jobs.
var ErrJobID = errors.New("Invalid job id") // Slurm's wording

// ParseJobIDs parses a list of jobs: "12,13_4,14_[1-4,7],15_*". A step ("12.batch", "12.0") is treated as its job.
func ParseJobIDs(text string) ([]JobID, error) {
	var ids []JobID
	tasks := 0
	for text != "" {
		var one string
		one, text = cutList(text)
		if one == "" {
			continue
		}
		id, err := ParseJobID(one)
		if err != nil {
			return nil, err
		}
		if tasks += len(id.Tasks); tasks > MaxTask {
			return nil, fmt.Errorf("%w: more than %d tasks of arrays", ErrJobID, MaxTask)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// cutList cuts a list at its first comma outside brackets.
func cutList(text string) (first, rest string) {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth <= 0 {
				return text[:i], text[i+1:]
			}
		}
	}
	return text, ""
}

// ParseJobID parses one job: "12", "12_3", "12_[1-4]", "12_*" or "12.batch".
func ParseJobID(text string) (JobID, error) {
	name, _, _ := strings.Cut(text, ".")
	digits, tasks, inArray := strings.Cut(name, "_")
	job, ok := number(digits)
	if !ok || job == 0 {
		return JobID{}, fmt.Errorf("%w: %s", ErrJobID, text)
	}
	id := JobID{Job: int(job)}
	if !inArray || tasks == "*" {
		return id, nil
	}
	list, err := parseNumbers(tasks, MaxTask)
	if err != nil {
		return JobID{}, fmt.Errorf("%w: %s", ErrJobID, text)
	}
	id.Tasks = list
	return id, nil
}

// String formats the id as ParseJobID accepts it: "12", "12_3", "12_[1-4]".
func (id JobID) String() string {
	switch len(id.Tasks) {
	case 0:
		return strconv.Itoa(id.Job)
	case 1:
		return fmt.Sprintf("%d_%d", id.Job, id.Tasks[0])
	}
	return fmt.Sprintf("%d_[%s]", id.Job, Numbers(id.Tasks))
}
