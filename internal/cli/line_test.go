package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
	"pgregory.net/rapid"
)

func TestAFlagOfOneValueIsGivenOnce(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"plan a.json --deadline 1h --deadline 12h":      "--deadline may be given only once; see `corral plan --help`",
		"plan --deadline=1h a.json --deadline=1h":       "--deadline may be given only once; see `corral plan --help`",
		"-o json site list -o yaml":                     "-o may be given only once; see `corral site list --help`",
		"site list --output json -o json":               "-o may be given only once; see `corral site list --help`",
		"glidein create --site a -s b":                  "-s may be given only once; see `corral glidein create --help`",
		"plan release 1 --wait --timeout 1s --wait":     "--wait may be given only once; see `corral plan release --help`",
		"-q runs wait 3 -q":                             "-q may be given only once; see `corral runs wait --help`",
		"run a.json --site a --site b --label x=1":      "",
		"plan show 3 -o json":                           "",
		"submit --time 1h -- echo --time 1h --time 2h":  "",
		"glidein create --label a=b --label a=c --help": "",
	} {
		app := (&printer{}).newApp()
		l := parse(app, strings.Fields(line))
		if err := l.check(app); (err != nil || want != "") && fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// A reading is the input of a command after parsing.
type reading struct {
	Command   string
	Flags     map[string]string
	Arguments []string
}

// readLine returns the input of the command that args name, without running the command.
func readLine(args []string) (got reading, err error) {
	app := (&printer{stdio: stdio{strings.NewReader(""), io.Discard, io.Discard}}).newApp()
	var capture func(c *cli.Command)
	capture = func(c *cli.Command) {
		if len(c.Subcommands) == 0 || c.ArgsUsage != "" { // a verb, which may also be a noun
			c.Action = func(c *cli.Context) error {
				got = reading{Command: c.Command.HelpName, Flags: map[string]string{}, Arguments: c.Args().Slice()}
				for _, name := range []string{"output", "quiet", "server"} {
					got.Flags[name] = fmt.Sprint(c.Value(name))
				}
				for _, f := range c.Command.Flags {
					name := f.Names()[0]
					got.Flags[name] = fmt.Sprint(c.Value(name))
					if several := c.StringSlice(name); several != nil {
						got.Flags[name] = strings.Join(several, " | ")
					}
				}
				return nil
			}
		}
		for _, sub := range c.Subcommands {
			capture(sub)
		}
	}
	for _, c := range app.Commands {
		capture(c)
	}
	err = app.Run(append([]string{"corral"}, parse(app, args).arguments()...))
	return got, err
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ line, want string }{
		{"site list", "site list"},
		{"site list -o json", "-o json site list"},
		{"-o json site list", "-o json site list"},
		{"site -q list --output=json", "-q --output=json site list"},
		{"glidein remove 7 --now -o json", "-o json glidein remove --now 7"},
		{"glidein create --wait --site local -q", "-q glidein create --wait --site local"},
		{"glidein create -l x --site", "glidein create -l --site x"}, // runLine refuses this line
		{"run a.json --dir -x", "run --dir -x a.json"},
		{"plan a.json --deadline 2m -q", "-q plan --deadline 2m a.json"},
		{"plan show 3 -o json", "-o json plan show 3"},
		{"run -- -a.json", "run -- -a.json"},
		{"run -", "run -- -"},
		{"site create -f -", "site create -f -"},
		{"glidein show 7 list", "glidein show 7 list"},
		{"run site", "run site"},
		{"glidein creat --site local", "glidein creat local"}, // glidein has no flag --site
		{"glidein --colour creat", "glidein --colour creat"},
		{"runs wait -l a=b 3 --timeout 1s", "runs wait -l a=b --timeout 1s 3"},
	} {
		app := (&printer{}).newApp()
		if got := strings.Join(parse(app, strings.Fields(tt.line)).arguments(), " "); got != tt.want {
			t.Errorf("parse(%q) = %q, want %q", tt.line, got, tt.want)
		}
	}
}

func TestParseHelpAndVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line          string
		help, version bool
	}{
		{"--help", true, false}, {"glidein create -h --site x", true, false}, {"glidein --help create", true, false},
		{"--version", false, true}, {"run -- --help", false, false}, {"run --dir --help", false, false},
	} {
		l := parse((&printer{}).newApp(), strings.Fields(tt.line))
		if l.help != tt.help || l.version != tt.version {
			t.Errorf("parse(%q): help %v, version %v, want %v, %v", tt.line, l.help, l.version, tt.help, tt.version)
		}
	}
}

// The words of a command line of glidein create; the words of each piece are kept together.
var pieces = [][]string{
	{"--site", "local"}, {"--hosts=2"}, {"-c", "mine"}, {"--wait"}, {"--walltime", "2h"}, {"--memory", "4GiB"},
	{"--label", "a=b,c=d"}, {"--site-opt", "-l nodes=1,mem=2"}, {"--timeout", "1m"}, {"--key", "-k"},
	{"-o", "json"}, {"-q"}, {"--server", "unix:/x"}, {"stray"}, {"glidein"},
}

// Flags may precede the noun, follow the verb, or be between them: the command receives the same input.
func TestOrderOfFlagsNeverMatters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		chosen := rapid.SliceOfDistinct(rapid.SampledFrom(pieces), func(p []string) string { return p[0] }).Draw(t, "pieces")
		isFlag := func(p []string) bool { return p[0][0] == '-' }
		isGlobal := func(p []string) bool { return slices.Contains([]string{"-o", "-q", "--server"}, p[0]) }

		straight := []string{"glidein", "create"}
		for _, p := range chosen {
			if isFlag(p) {
				straight = append(straight, p...)
			}
		}
		for _, p := range chosen {
			if !isFlag(p) {
				straight = append(straight, p...)
			}
		}
		var before, between, after []string
		for _, p := range chosen {
			switch place := rapid.IntRange(0, 2).Draw(t, "place"); {
			case isGlobal(p) && place == 0:
				before = append(before, p...)
			case isGlobal(p) && place == 1:
				between = append(between, p...)
			default:
				after = append(after, p...)
			}
		}
		mixed := slices.Concat(before, []string{"glidein"}, between, []string{"create"}, after)

		want, err := readLine(straight)
		if err != nil {
			t.Fatalf("%q: %v", straight, err)
		}
		got, err := readLine(mixed)
		if err != nil {
			t.Fatalf("%q: %v", mixed, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q is read otherwise than %q (-straight +mixed):\n%s", mixed, straight, diff)
		}
	})
}

// Values are taken literally: commas do not split them.
func TestValuesWithCommas(t *testing.T) {
	t.Parallel()
	got, err := readLine([]string{"glidein", "create", "--site-opt", "-l nodes=1,mem=2", "--site-opt", "-q long"})
	if want := "-l nodes=1,mem=2 | -q long"; err != nil || got.Flags["site-opt"] != want {
		t.Errorf("site-opt is %q, %v, want %q", got.Flags["site-opt"], err, want)
	}
}
