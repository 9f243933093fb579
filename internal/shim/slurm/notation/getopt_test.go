package notation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A parsed holds the options of the command in these tests.
type parsed struct {
	Name string
	List []string
	All  bool
	Log  []string // the names of the options that were applied, in order
}

func logged(p *parsed, g notation.Given) error {
	p.Log = append(p.Log, g.Name)
	return nil
}

// command has options of each kind.
var command = notation.Command[parsed]{Name: "cmd", Options: []notation.Option[parsed]{
	{Names: "all|a", Set: notation.On(func(p *parsed) *bool { return &p.All })},
	{Names: "jobs|j?", Set: logged, Variables: "CMD_JOBS"},
	{Names: "name|n=", Set: notation.Text(func(p *parsed) *string { return &p.Name }), Variables: "CMD_NAME OLD_NAME"},
	{Names: "names-only"},
	{Names: "mem= mem-bind= mem-per-cpu=", Set: logged},
	{Names: "list|l=", Set: notation.List(func(p *parsed) *[]string { return &p.List })},
	{Names: "hold|H", Set: notation.Refuse[parsed]("jobs start at once"), Variables: "CMD_HOLD"},
	{Names: "quiet|Q verbose|v"},
}}

const try = "\nTry \"cmd --help\" for more information"

// Each case is a command line, the options and the other words in it, or getopt's error.
func TestGetopt(t *testing.T) {
	for line, want := range map[string]string{
		"":                         "",
		"-a":                       "--all",
		"--all x y":                "--all | x y",
		"x -a y":                   "--all | x y",
		"-aQv":                     "--all --quiet --verbose",
		"-an b":                    "--all --name=b",
		"-anb":                     "--all --name=b",
		"-n -a":                    "--name=-a",
		"--name b":                 "--name=b",
		"--name=b":                 "--name=b",
		"--name=":                  "--name",
		"--name=b=c":               "--name=b=c",
		"-j":                       "--jobs",
		"-j 7":                     "--jobs | 7",
		"-j7":                      "--jobs=7",
		"--jobs=7":                 "--jobs=7",
		"--jobs 7":                 "--jobs | 7",
		"--":                       "",
		"-a -- -n --b":             "--all | -n --b",
		"- a":                      " | - a",
		"--al":                     "--all",
		"--mem=1 --mem-b=2":        "--mem=1 --mem-bind=2",
		"--mem-p 3":                "--mem-per-cpu=3",
		"--name=b --name=c":        "--name=b --name=c",
		"-z":                       "cmd: invalid option -- 'z'" + try,
		"-az":                      "cmd: invalid option -- 'z'" + try,
		"-n":                       "cmd: option requires an argument -- 'n'" + try,
		"--name":                   "cmd: option '--name' requires an argument" + try,
		"--all=1":                  "cmd: option '--all' doesn't allow an argument" + try,
		"--none":                   "cmd: unrecognized option '--none'" + try,
		"--none=1":                 "cmd: unrecognized option '--none=1'" + try,
		"--nam=1":                  "cmd: option '--nam=1' is ambiguous; possibilities: '--name' '--names-only'" + try,
		"--mem-":                   "cmd: option '--mem-' is ambiguous; possibilities: '--mem-bind' '--mem-per-cpu'" + try,
		"--hold -a":                "--hold --all", // it is refused when it is applied
		"--names-only=x":           "cmd: option '--names-only' doesn't allow an argument" + try,
		"--quiet --verb -- --name": "--quiet --verbose | --name",
	} {
		given, rest, err := command.Parse(strings.Fields(line))
		var got strings.Builder
		for i, g := range given {
			got.WriteString(strings.Repeat(" ", min(i, 1)) + g.String())
		}
		if len(rest) > 0 {
			got.WriteString(" | " + strings.Join(rest, " "))
		}
		if err != nil {
			got.WriteString(err.Error())
		}
		if got.String() != want {
			t.Errorf("%s: %q, want %q", line, got.String(), want)
		}
	}
}

// The options of an ordered command end at its first other word.
func TestOrderedGetopt(t *testing.T) {
	ordered := command
	ordered.Ordered = true
	given, rest, err := ordered.Parse([]string{"-n", "b", "script", "-a", "--name=c"})
	if err != nil || fmt.Sprint(given) != "[--name=b]" || !slices.Equal(rest, []string{"script", "-a", "--name=c"}) {
		t.Errorf("%v, %q, %v", given, rest, err)
	}
}

// Options are applied in order until one is refused, which is named as its user wrote it.
func TestApply(t *testing.T) {
	apply := func(given ...notation.Given) (p parsed, err error) { return p, command.Apply(&p, given...) }
	given, _, err := command.Parse(strings.Fields("-a --name b -n c --mem=1 -j --list=x,,y -Q --mem-bind=2"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := apply(given...)
	want := parsed{Name: "c", List: []string{"x", "", "y"}, All: true, Log: []string{"mem", "jobs", "mem-bind"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	var p parsed
	err = command.Apply(&p, notation.Given{Name: "all"}, notation.Given{Name: "hold"}, notation.Given{Name: "jobs"})
	if text := "--hold is not supported on a Corral cluster: jobs start at once"; err == nil || err.Error() != text || len(p.Log) > 0 {
		t.Errorf("%v after %+v, want %s", err, p, text)
	}
	if _, err := apply(notation.Given{Name: "none"}); err == nil {
		t.Error("an unknown option is applied")
	}
}

// Options in environment variables come in the order of the command's options, and the first of two variables with one
// option is overridden by the second.
func TestEnvironmentOptions(t *testing.T) {
	given := command.Environment(map[string]string{"OLD_NAME": "o", "CMD_HOLD": "", "CMD_NAME": "c", "CMD_JOBS": "1", "NAME": "x"})
	if got, want := fmt.Sprint(given), "[CMD_JOBS=1 CMD_NAME=c OLD_NAME=o CMD_HOLD=]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var p parsed
	err := command.Apply(&p, given...)
	if want := "CMD_HOLD= is not supported on a Corral cluster: jobs start at once"; err == nil || err.Error() != want || p.Name != "o" {
		t.Errorf("%+v, %v, want %s", p, err, want)
	}
}

// Each case is an error, and what a command prints for it.
func TestMessage(t *testing.T) {
	for text, want := range map[string]string{
		"no":           "cmd: error: no",
		"no\nnever":    "cmd: error: no\ncmd: error: never",
		"fatal: no":    "cmd: fatal: no",
		"fatal: a\nb":  "cmd: fatal: a\ncmd: fatal: b",
		"not fatal: a": "cmd: error: not fatal: a",
	} {
		if got := notation.Message("cmd", fmt.Errorf("%s", text)); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
	}
	usage := &notation.UsageError{Text: "cmd: invalid option -- 'z'"}
	if got := notation.Message("cmd", fmt.Errorf("wrapped: %w", usage)); got != usage.Text {
		t.Errorf("a usage error is printed as %q", got)
	}
}

// Options are the same when they are parsed again as they are shown, in any command line that can be parsed.
func FuzzGetopt(f *testing.F) {
	for _, line := range []string{"-aQvn\nb", "--mem-b=2\nx\n--\n-a", "-j7\n-\n--jobs=1", "--nam=1", "-n", "--=", "-\xff"} {
		f.Add(line, true)
		f.Add(line, false)
	}
	f.Fuzz(func(t *testing.T, line string, ordered bool) {
		c := command
		c.Ordered = ordered
		given, rest, err := c.Parse(strings.Split(line, "\n"))
		if err != nil {
			if notation.Message("cmd", err) == "" {
				t.Error("an error without words")
			}
			return
		}
		var words []string
		for _, g := range given {
			word := "--" + g.Name
			if g.Value != "" {
				word += "=" + g.Value
			}
			if words = append(words, word); g.Value == "" && (g.Name == "name" || g.Name == "list" || strings.HasPrefix(g.Name, "mem")) {
				words = append(words, "") // an empty argument
			}
		}
		again, others, err := c.Parse(append(append(words, "--"), rest...))
		if err != nil || !slices.Equal(given, again) || !slices.Equal(rest, others) {
			t.Errorf("%q is %v and %q, then %v and %q, %v", line, given, rest, again, others, err)
		}
		_ = c.Apply(&parsed{}, given...)
	})
}
