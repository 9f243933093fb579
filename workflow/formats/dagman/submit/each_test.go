package submit_test

import (
	"strings"
	"testing"

	"github.com/corral-pilot/corral/workflow/formats/dagman/submit"
)

// spent returns the charge for executing a description once, including its jobs' arguments; most is the limit.
func spent(t *testing.T, text string, most int64) (int64, error) {
	t.Helper()
	d, err := submit.Parse(submit.NewLines(strings.NewReader(text), "x", 64<<20), nil)
	if err != nil {
		t.Fatal(err)
	}
	left := most
	given := submit.Given{Left: &left, Append: []submit.Var{{Name: "app", Value: "1"}}}
	err = d.Each(given, func(j *submit.Proc) error {
		_, _, err := j.Value("arguments")
		return err
	})
	return most - left, err
}

// A description may be executed for a million nodes: everything that takes time is charged, even if it has no effect.
func TestWhatTakesTimeIsCharged(t *testing.T) {
	t.Parallel()
	const n = 10_000
	long := strings.Repeat("b", n)
	for _, c := range []struct{ name, text string }{
		{"a text whose macros are empty", "arguments = " + strings.Repeat("$(e)", n/4)},
		{"a text of which a function leaves nothing", "e = " + long + "\narguments = $Fx(e)"},
		{"macros in macros that are empty", "e = " + strings.Repeat("$(f)", n/4) + "\narguments = $(e)"},
		{"parentheses without an end", "arguments = " + strings.Repeat("$(", n/100) + strings.Repeat("(", n/100)},
		{"a condition", "if " + strings.Repeat("$(e)", n/4) + "\nendif"},
		{"a condition that is defined", "if defined " + strings.Repeat("$(e)", n/4) + "\nendif"},
		{"denials", "if " + strings.Repeat("!", n) + " true\nendif"},
		{"a count", "queue " + strings.Repeat("$(e)", n/4) + " 0"},
		{"words", "queue 0 x in (" + strings.Repeat("$(e)", n/4) + ")"},
		{"items", "queue 0 x from (\n" + strings.Repeat("a\n", n/4) + ")"},
		{"a long item", "queue 0 x y from (\n" + long + "\n)"},
		{"the names of items", "queue 0 " + strings.Repeat("x ", n/100) + "from (\n" + strings.Repeat("a\n", 100) + ")"},
		{"a macro that is given itself", "a = " + long + "\na = $(a)"},
		{"what is set before each queue", strings.Repeat("queue 0\n", n/4/3)},
	} {
		took, err := spent(t, c.text+"\n", 1<<30)
		if err != nil || took < n {
			t.Errorf("%s: charged %d, %v, want %d or more", c.name, took, err, n)
		}
		if took, err = spent(t, c.text+"\n", n/2); err == nil || took > 20*n ||
			!strings.Contains(err.Error(), "the values of all jobs together exceed the size limit of a workflow") {
			t.Errorf("%s: charged %d, %v, want a refusal at %d", c.name, took, err, n/2)
		}
	}
}

// The charge for ordinary descriptions is small, so that workflows of a million jobs can be read.
func TestAnOrdinaryDescriptionIsChargedLittle(t *testing.T) {
	t.Parallel()
	took, err := spent(t, "executable = /bin/echo\narguments = -i $(in) -o $(out:x) --seed $(Process)\nin = a\nqueue 1\n", 1<<20)
	if err != nil || took > 300 {
		t.Errorf("charged %d, %v, want at most 300", took, err)
	}
}
