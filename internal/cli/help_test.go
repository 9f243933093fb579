package cli

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// everyCommand calls f with every command and the path to it.
func everyCommand(f func(app *cli.App, path []*cli.Command)) {
	app := (&printer{}).newApp()
	var walk func(path, commands []*cli.Command)
	walk = func(path, commands []*cli.Command) {
		for _, c := range commands {
			here := append(path[:len(path):len(path)], c)
			f(app, here)
			walk(here, c.Subcommands)
		}
	}
	f(app, nil)
	walk(nil, app.Commands)
}

func helpOf(app *cli.App, path []*cli.Command) string {
	var b strings.Builder
	printHelp(&b, app, path)
	return b.String()
}

// The help of every command describes what the command does, contains an example, and names the global flags and the
// exit codes, in lines that fit a terminal.
func TestEveryHelp(t *testing.T) {
	t.Parallel()
	everyCommand(func(app *cli.App, path []*cli.Command) {
		text := helpOf(app, path)
		name := "corral"
		for _, c := range path {
			name += " " + c.Name
		}
		for _, want := range []string{"\nUSAGE\n  " + name, "\nEXAMPLE\n  ", "--server URL", "-o, --output FORM", "-q, --quiet", "-h, --help", "\nEXIT CODES\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("help of %s lacks %q", name, want)
			}
		}
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpWidth {
				t.Errorf("help of %s has a line of %d characters: %s", name, n, line)
			}
			if strings.TrimRight(line, " \n")+"\n" != line {
				t.Errorf("help of %s has a line that ends in spaces: %q", name, line)
			}
		}
	})
}

// Each example in help is a valid command line.
func TestExamplesAreCommandLines(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`corral [^)&]*`)
	everyCommand(func(app *cli.App, path []*cli.Command) {
		_, example, _ := strings.Cut(helpOf(app, path), "\nEXAMPLE\n")
		example, _, _ = strings.Cut(example, "\n\n")
		found := command.FindAllString(example, -1)
		if len(found) == 0 {
			t.Errorf("no example in %q", example)
		}
		for _, line := range found {
			got, err := readLine(strings.Fields(line)[1:])
			if err != nil || got.Command == "" {
				t.Errorf("example %q: %+v, %v", line, got, err)
			}
		}
	})
}

// Help names all exit codes.
func TestExitCodesOfHelp(t *testing.T) {
	t.Parallel()
	for _, kind := range []corral.Kind{corral.Invalid, corral.KeyReused, corral.Unsatisfiable, corral.NotFound, corral.Conflict, corral.Unauthenticated,
		corral.Forbidden, corral.Unavailable, corral.Unknown, corral.Timeout, corral.Failed, corral.Missed,
		corral.Internal} {
		code := strconv.Itoa(api.ExitCode(corral.Errorf(kind, "x")))
		if !regexp.MustCompile(`(?m)(^| ) +` + code + `  [a-z]`).MatchString(exitCodes) {
			t.Errorf("help does not name exit code %s of %s", code, kind)
		}
	}
}

// No flag of a command has the name of a global flag.
func TestFlagsDoNotClash(t *testing.T) {
	t.Parallel()
	everyCommand(func(app *cli.App, path []*cli.Command) {
		if len(path) == 0 {
			return
		}
		for _, f := range path[len(path)-1].Flags {
			for _, name := range f.Names() {
				if lookup(app.Flags, name) != nil || name == "h" || name == "help" || name == "version" {
					t.Errorf("%s has a flag %s of its own", path[len(path)-1].Name, name)
				}
			}
		}
	})
}

func TestNearest(t *testing.T) {
	t.Parallel()
	among := []string{"site", "glidein", "run", "runs", "up"}
	for name, want := range map[string]string{
		"sites": "site", "glidien": "glidein", "glideins": "glidein", "rnu": "run", "rusn": "run",
		"harvest": "", "": "", "x": "", "upp": "up", "cluster": "", "rup": "run",
	} {
		if got := input.Nearest(among, name); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

// Every section of the help texts describes a command that exists.
func TestManualHasNoOthers(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	everyCommand(func(_ *cli.App, path []*cli.Command) {
		name := "corral"
		for _, c := range path {
			name += " " + c.Name
		}
		known[name] = true
	})
	for _, section := range manual() {
		if name := regexp.MustCompile(`^[a-z ]*[a-z]`).FindString(section); !known[name] {
			t.Errorf("help explains %q, which is not a command", name)
		}
	}
}

// docs/api.md lists the exit codes of each verb in one table.
func TestExitCodesOfEveryVerb(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## What each verb ends with\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]int{}
	for line := range strings.Lines(section) {
		if verbs, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), " | "); ok && strings.HasPrefix(line, "| `") {
			for verb := range strings.SplitSeq(strings.TrimSuffix(verbs, "`"), "`, `") {
				rows[verb]++
			}
		}
	}
	everyCommand(func(_ *cli.App, path []*cli.Command) {
		if len(path) == 0 {
			return
		}
		var names []string
		for _, c := range path {
			names = append(names, c.Name)
		}
		verb := strings.Join(names, " ")
		noun := len(path[len(path)-1].Subcommands) > 0 // some nouns are also verbs
		if rows[verb] != 1 && !(noun && rows[verb] == 0) {
			t.Errorf("%s is in %d rows", verb, rows[verb])
		}
		delete(rows, verb)
	})
	for verb := range rows {
		if verb != "corral` and" {
			t.Errorf("there is no verb %s", verb)
		}
	}
}
