package notation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrArray is Slurm's error for an invalid list of an array's tasks.
var ErrArray = errors.New("Invalid job array specification") // Slurm's wording

// ParseArray parses the argument of --array: "0-9:2,15". Numbers up to highest are allowed. With a suffix "%4", four of
// the tasks may run at a time. An empty text means that there is no array.
func ParseArray(text string, highest int) (*Array, error) {
	list, throttle, _ := strings.Cut(text, "%")
	atOnce, _ := number(throttle) // 0: no limit, as in Slurm for anything except a number
	if list == "" {               // --array= overrides a directive in the script
		return nil, nil
	}
	tasks, err := parseNumbers(list, highest)
	if err != nil {
		return nil, ErrArray
	}
	return &Array{Text: text, Tasks: tasks, AtOnce: int(min(atOnce, MaxTask))}, nil
}

// parseNumbers parses "1,3-5,10-20:5", optionally in brackets, into sorted numbers up to highest, without duplicates.
// Like Slurm, it accepts a single bracket and additional commas.
func parseNumbers(text string, highest int) ([]int, error) {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimLeft(part, " "); part == "" {
			continue
		}
		first, last, step, err := parseRange(part)
		if err != nil {
			return nil, err
		}
		if last > highest {
			return nil, fmt.Errorf("%d is more than %d", last, highest)
		}
		if len(list)+(last-first)/step > 2*highest+2 { // overlapping ranges
			return nil, fmt.Errorf("more than %d numbers", highest+1)
		}
		for n := first; n <= last; n += step {
			list = append(list, n)
		}
	}
	if list == nil {
		return nil, fmt.Errorf("%q has no numbers", text)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// parseRange parses N, FIRST-LAST or FIRST-LAST:STEP.
func parseRange(text string) (first, last, step int, err error) {
	ends, by, stepped := strings.Cut(text, ":")
	from, to, ranged := strings.Cut(ends, "-")
	if !ranged {
		to = from
	}
	if !stepped {
		by = "1"
	}
	a, ok := number(from)
	b, ok2 := number(to)
	c, ok3 := number(by)
	if !ok || !ok2 || !ok3 || b < a || c < 1 || c > MaxTask || stepped && !ranged {
		return 0, 0, 0, fmt.Errorf("%q is not a range", text)
	}
	return int(a), int(b), int(c), nil
}

// Numbers formats ascending numbers as a list of tasks: "0-9,15".
func Numbers(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		end := i
		for end+1 < len(list) && list[end+1] == list[end]+1 {
			end++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(list[i]))
		if end > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(list[end]))
		}
		i = end + 1
	}
	return b.String()
}

// shownNumbers is the maximum length of a list of an array's tasks in Slurm's output.
const shownNumbers = 63

// ShowNumbers formats ascending numbers as Slurm shows the rest of an array: like Numbers, but with "1-99:2" for many
// numbers with the same distance, and with only the beginning of a long list.
func ShowNumbers(list []int) string {
	if n := len(list); n > 5 && list[n-1]-list[0] > 10 {
		step := list[1] - list[0]
		even := step > 1
		for i := 2; even && i < n; i++ {
			even = list[i]-list[i-1] == step
		}
		if even {
			return fmt.Sprintf("%d-%d:%d", list[0], list[n-1], step)
		}
	}
	text := Numbers(list)
	if len(text) > shownNumbers {
		text = text[:shownNumbers-3] + "..."
	}
	return text
}
