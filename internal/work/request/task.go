package request

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/corral-pilot/corral/api"
)

// CheckNewTask checks a request to add tasks to an open run. It does not check the tasks that they wait for, which only
// the run knows.
func CheckNewTask(in api.NewTask) error {
	var k checker
	k.text("name", in.Name)
	k.invalid(len(in.Argv) == 0 || in.Argv[0] == "", "argv", "missing: want a command and its arguments")
	k.absolute("directory", in.Directory)
	k.invalid(in.Directory != filepath.Clean(in.Directory) && in.Directory != "", "directory",
		"%.80q is not a clean path; %.80q is", in.Directory, filepath.Clean(in.Directory))
	// The total is the size of the arguments of one exec(2): a task that could not begin is refused before it waits.
	size := len(in.Directory)
	for i, word := range in.Argv {
		size += len(word) + 1
		k.invalid(strings.ContainsRune(word, 0), fmt.Sprintf("argv[%d]", i), "it contains a zero byte")
	}
	for i, pair := range in.Environment {
		size += len(pair) + 1
		name, _, ok := strings.Cut(pair, "=")
		k.invalid(!ok || name == "" || strings.ContainsRune(pair, 0), fmt.Sprintf("environment[%d]", i),
			"%.40q is not NAME=VALUE", pair)
	}
	k.invalid(size > api.MaxWords, "argv", "command, environment and directory have %d bytes together, and the "+
		"maximum is %d: put long text into the note", size, api.MaxWords)
	k.invalid(len(in.Note) > api.MaxNote, "note", "%d bytes are more than %d", len(in.Note), api.MaxNote)
	checkAttributes(&k, in.Attributes)
	k.invalid(len(in.After) > api.MaxAfter, "after", "%d are more than %d", len(in.After), api.MaxAfter)
	for i, w := range in.After {
		k.invalid(!slices.Contains(api.Whens, w.When), fmt.Sprintf("after[%d].when", i), "%.40q is none of %s", w.When,
			words(api.Whens))
	}
	k.invalid(in.Elements < 0, "elements", "%d is negative", in.Elements)
	k.unsatisfiable(in.Elements > api.MaxArray, "elements", "an array of %d is larger than %d", in.Elements,
		api.MaxArray)
	k.invalid(in.AtOnce < 0 || in.AtOnce > 0 && in.Elements == 0, "at_once", "it requires an array: set elements")
	return k.err
}

// checkAttributes checks the texts that are stored with tasks. Their keys are displayed.
func checkAttributes(k *checker, attributes map[string]string) {
	size := 0
	for key, value := range attributes {
		size += len(key) + len(value)
		k.invalid(key == "" || strings.ContainsFunc(key, unicode.IsControl), "attributes",
			"%.40q is not a key: want a text without control characters", key)
	}
	k.invalid(size > api.MaxAttributes, "attributes", "they have %d bytes together, and the maximum is %d", size,
		api.MaxAttributes)
}

// maxRanges is the maximum number of ranges in one query.
const maxRanges = 10_000

// Ranges returns a list of positive numbers and ranges, as in 3,7-9; absent is nil. The result is ascending, and its
// ranges do not overlap or touch.
func (q *Query) Ranges(name string) [][2]int {
	if !q.Has(name) {
		return nil
	}
	var all [][2]int
	for word := range strings.SplitSeq(q.Text(name), ",") {
		from, to, isRange := strings.Cut(word, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		bad := cmp.Or(err, err2) != nil || first < 1 || last < first
		q.checker.invalid(bad, name, "%.40q is neither a number from 1 nor a range of them, as in 3,7-9", word)
		q.checker.invalid(len(all) >= maxRanges, name, "more than %d ranges", maxRanges)
		if q.checker.err != nil {
			return nil
		}
		all = append(all, [2]int{first, last})
	}
	slices.SortFunc(all, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	merged := all[:1]
	for _, r := range all[1:] {
		if end := &merged[len(merged)-1][1]; r[0] <= *end || r[0] == *end+1 {
			*end = max(*end, r[1])
		} else {
			merged = append(merged, r)
		}
	}
	return merged
}

// openRun refuses fields that only a run with a workflow has.
func openRun(k *checker, in api.NewRun) {
	k.invalid(len(in.Workflow) > 0, "workflow", "an open run must not have one: tasks are added to it")
	k.invalid(in.SourceDir+in.DoneDir+in.Rescue != "" || in.Changed, "open",
		"an open run has no workflow file: leave out source_dir, done_dir, rescue and changed")
	k.invalid(in.WorkflowName == "", "workflow_name", "missing: the run needs a name")
}
