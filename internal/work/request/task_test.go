package request

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

func TestCheckNewTask(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		change func(*api.NewTask)
		want   string // beginning of the error
	}{
		{func(*api.NewTask) {}, ""},
		{func(in *api.NewTask) { in.Argv = nil }, "argv: missing"},
		{func(in *api.NewTask) { in.Argv = []string{"a", "b\x00"} }, "argv[1]: it contains a zero byte"},
		{func(in *api.NewTask) { in.Name = "a\nb" }, "name: "},
		{func(in *api.NewTask) { in.Directory = "here" }, `directory: "here" is not an absolute path`},
		{func(in *api.NewTask) { in.Directory = "/a/../b" }, `directory: "/a/../b" is not a clean path; "/b" is`},
		{func(in *api.NewTask) { in.Environment = []string{"A=1", "B"} }, `environment[1]: "B" is not NAME=VALUE`},
		{func(in *api.NewTask) { in.Argv = []string{strings.Repeat("x", api.MaxWords)} }, "argv: command, environment and"},
		{func(in *api.NewTask) { in.Note = strings.Repeat("x", api.MaxNote+1) }, "note: 1048577 bytes are more than 1048576"},
		{func(in *api.NewTask) { in.Attributes = map[string]string{"a": strings.Repeat("x", api.MaxAttributes)} },
			"attributes: they have 32769 bytes together, and the maximum is 32768"},
		{func(in *api.NewTask) { in.Attributes = map[string]string{"": "x"} }, `attributes: "" is not a key`},
		{func(in *api.NewTask) { in.After = []api.Condition{{Task: 1, When: "soon"}} },
			`after[0].when: "soon" is none of started, ended, succeeded, failed`},
		{func(in *api.NewTask) { in.Elements = api.MaxArray + 1 }, "elements: an array of 100001 is larger than 100000"},
		{func(in *api.NewTask) { in.AtOnce = 2 }, "at_once: it requires an array"},
	} {
		in := api.NewTask{Argv: []string{"true"}, Resources: corral.Resources{CPUs: 1}}
		tc.change(&in)
		switch err := CheckNewTask(in); {
		case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)):
			t.Errorf("CheckNewTask: %v, want %q", err, tc.want)
		}
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][][2]int{
		"3": {{3, 3}}, "3,7-9": {{3, 3}, {7, 9}}, "7-9,3": {{3, 3}, {7, 9}}, "1-4,2-3,5,9-9": {{1, 5}, {9, 9}},
		"": nil, "0": nil, "a": nil, "3-": nil, "-3": nil, "4-3": nil, "1,,2": nil, "1-2-3": nil,
	} {
		q := ReadQuery("task="+text, "task")
		if diff := cmp.Diff(want, q.Ranges("task")); diff != "" || (want == nil) != (q.Err() != nil) {
			t.Errorf("task=%s: %v\n%s", text, q.Err(), diff)
		}
	}
}

// FuzzRanges: the result is ascending and without overlaps, and parsing its text returns the same result.
func FuzzRanges(f *testing.F) {
	for _, seed := range []string{"3,7-9", "1-4,2-3", "9223372036854775807", "1-", "%2C"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q := ReadQuery("task="+text, "task")
		ranges := q.Ranges("task")
		if q.Err() != nil || len(ranges) == 0 {
			return
		}
		var numbers []int
		for i, r := range ranges {
			if r[0] < 1 || r[1] < r[0] || i > 0 && r[0]-1 <= ranges[i-1][1] {
				t.Fatalf("%q reads as %v", text, ranges)
			}
			if r[1]-r[0] < 1000 {
				for n := r[0]; n <= r[1] && n > 0; n++ {
					numbers = append(numbers, n)
				}
			}
		}
		if len(numbers) == 0 || slices.Max(numbers) > 1<<40 {
			return
		}
		again := ReadQuery("task="+api.Ranges(numbers), "task").Ranges("task")
		small := slices.DeleteFunc(slices.Clone(ranges), func(r [2]int) bool { return r[1]-r[0] >= 1000 })
		if diff := cmp.Diff(small, again); diff != "" {
			t.Fatalf("%q, written again (-first +second):\n%s", text, diff)
		}
	})
}
