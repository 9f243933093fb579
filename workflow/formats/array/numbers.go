package array

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

// maxEntry is the maximum size of an entry: an environment variable, including its name, must be shorter than 128 KiB
// on Linux.
const maxEntry = 128<<10 - 64

// ParseNumbers parses the numbers of an array: single numbers and ranges, with an optional step, such as 1-10,
// 3,7,20-29 or 0-100:10. It returns them in ascending order, without duplicates.
func ParseNumbers(text string) ([]int, error) {
	var numbers []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, step, ok := parseRange(strings.TrimSpace(part))
		switch {
		case !ok:
			return nil, wrongNumbers("%.40q is not a number, a range such as 1-100, or one with a step, 1-100:10", part)
		case last < first:
			return nil, wrongNumbers("%.40q ends before it begins", part)
		case (last-first)/step+1 > workflow.DefaultMaxTasks-len(numbers):
			return nil, wrongNumbers("there are more than %d tasks", workflow.DefaultMaxTasks)
		}
		for n := first; n <= last; n += step {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// parseRange parses N, N-M or N-M:STEP.
func parseRange(text string) (first, last, step int, ok bool) {
	text, stepText, stepped := strings.Cut(text, ":")
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	step = 1
	ok = parseNumber(from, &first) && parseNumber(to, &last)
	if stepped {
		ok = ok && isRange && parseNumber(stepText, &step) && step > 0
	}
	return first, last, step, ok
}

// parseNumber parses digits without a sign.
func parseNumber(text string, n *int) bool {
	value, err := strconv.ParseUint(text, 10, 31)
	*n = int(value)
	return err == nil
}

func wrongNumbers(format string, args ...any) error {
	return corral.ErrorAt(corral.Invalid, "--array", format, args...)
}

// lines returns the lines of a text without line endings. Each line becomes the value of an environment variable of a
// task, so it must be valid as such a value.
func lines(name, text string) (all []string, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		at := place(name, len(all)+1)
		switch {
		case len(all) == workflow.DefaultMaxTasks:
			return nil, corral.ErrorAt(corral.Invalid, at, "there are more than %d tasks", workflow.DefaultMaxTasks)
		case len(line) > maxEntry:
			return nil, corral.ErrorAt(corral.Invalid, at, "the line has %d bytes; the maximum is %d", len(line),
				maxEntry)
		case !utf8.ValidString(line):
			return nil, corral.ErrorAt(corral.Invalid, at, "the line is not UTF-8, which is required for all texts "+
				"of a workflow")
		case strings.ContainsRune(line, 0):
			return nil, corral.ErrorAt(corral.Invalid, at, "the line contains a zero byte, which is not possible in "+
				"an environment variable")
		}
		all = append(all, line)
	}
	if len(all) == 0 {
		return nil, corral.ErrorAt(corral.Invalid, name, "it has no lines, so there would be no tasks")
	}
	return all, nil
}
