package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

type console struct{ out, err bytes.Buffer }

func (c *console) printer(format string) *printer {
	return &printer{stdio: stdio{strings.NewReader(""), &c.out, &c.err}, format: format}
}

type animal struct {
	Name  string `json:"name"`
	Sound string `json:"sound,omitempty"`
	Legs  int    `json:"legs"`
}

var animals = listing[animal]{
	id:   func(a animal) string { return a.Name },
	none: "no animals",
	columns: []column[animal]{
		{"name", func(a animal) any { return a.Name }},
		{"sound", func(a animal) any { return a.Sound }},
	},
	details: []column[animal]{{"legs", func(a animal) any { return unless(a.Legs) }}},
}

func TestListAndShow(t *testing.T) {
	t.Parallel()
	herd := []animal{{"cow", "moo", 4}, {"snail", "", 0}}
	for _, tt := range []struct {
		name, format string
		quiet        bool
		print        func(p *printer) error
		out, err     string
	}{
		{"list", formTable, false, func(p *printer) error { return animals.list(p, herd) }, "NAME   SOUND\ncow    moo\nsnail\n", ""},
		{"empty column", formTable, false, func(p *printer) error { return animals.list(p, herd[1:]) }, "NAME\nsnail\n", ""},
		{"empty list", formTable, false, func(p *printer) error { return animals.list(p, []animal{}) }, "", "no animals\n"},
		{"empty list, ids", formTable, true, func(p *printer) error { return animals.list(p, []animal{}) }, "", ""},
		{"empty list, JSON", formJSON, false, func(p *printer) error { return animals.list(p, []animal{}) }, "[]\n", ""},
		{"ids", formTable, true, func(p *printer) error { return animals.list(p, herd) }, "cow\nsnail\n", ""},
		{"YAML", formYAML, false, func(p *printer) error { return animals.list(p, herd[:1]) }, "- name: cow\n  sound: moo\n  legs: 4\n", ""},
		{"show", formTable, false, func(p *printer) error { return animals.show(p, herd[0]) }, "name   cow\nsound  moo\nlegs   4\n", ""},
		{"show, nothing empty", formTable, false, func(p *printer) error { return animals.show(p, herd[1]) }, "name  snail\n", ""},
		{"show id", formJSON, true, func(p *printer) error { return animals.show(p, herd[0]) }, "cow\n", ""},
		{"show JSON", formJSON, false, func(p *printer) error { return animals.show(p, herd[1]) }, "{\n  \"name\": \"snail\",\n  \"legs\": 0\n}\n", ""},
		{"one alone", formJSON, false, func(p *printer) error { return animals.showEach(p, herd[1:], true) }, "{\n  \"name\": \"snail\",\n  \"legs\": 0\n}\n", ""},
		{"one of a choice", formJSON, true, func(p *printer) error { return animals.showEach(p, herd[1:], false) }, "snail\n", ""},
	} {
		var c console
		p := c.printer(tt.format)
		p.quiet = tt.quiet
		if err := tt.print(p); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.out, c.out.String()) + cmp.Diff(tt.err, c.err.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// Lists show the owner of each object if there are several owners.
func TestOwnersAreListed(t *testing.T) {
	t.Parallel()
	runs := []corral.Run{{ID: 1, Owner: "ann", Workflow: "fold"}, {ID: 2, Owner: "ann", Workflow: "fold"}}
	for _, tt := range []struct{ second, header string }{
		{"ann", "ID  WORKFLOW  DONE"}, {"ben", "ID  OWNER  WORKFLOW  DONE"},
	} {
		runs[1].Owner = tt.second
		var c console
		if err := runTable.list(c.printer(formTable), runs); err != nil {
			t.Fatal(err)
		}
		if header, _, _ := strings.Cut(c.out.String(), "\n"); header != tt.header {
			t.Errorf("of ann's and %s's runs: %q, want %q", tt.second, header, tt.header)
		}
	}
}

func TestProblem(t *testing.T) {
	t.Parallel()
	refused := corral.ErrorAt(corral.NotFound, "site", "no site x")
	for _, tt := range []struct {
		name, format string
		err          error
		out          []string
	}{
		{"for people", formTable, refused, nil},
		{"before the form is known", "", refused, nil},
		{"JSON", formJSON, refused, []string{`"kind": "not-found"`, `"place": "site"`, `"detail": "site: no site x"`}},
		{"about", formJSON, objectError{"/v1/sites/3", refused}, []string{`"instance": "/v1/sites/3"`, `"kind": "not-found"`}},
		{"of this program", formYAML, errors.New("disk on fire"), []string{"detail: disk on fire", "kind: internal"}},
		{"told already", formJSON, printedError{refused}, nil},
	} {
		var c console
		c.printer(tt.format).problem(tt.err)
		if want := "corral: " + tt.err.Error() + "\n"; c.err.String() != want {
			t.Errorf("%s: stderr %q, want %q", tt.name, c.err.String(), want)
		}
		if len(tt.out) == 0 && c.out.Len() > 0 {
			t.Errorf("%s: stdout %q, want nothing", tt.name, c.out.String())
		}
		for _, want := range tt.out {
			if !strings.Contains(c.out.String(), want) {
				t.Errorf("%s: stdout %s lacks %s", tt.name, c.out.String(), want)
			}
		}
		if got, want := api.ExitCode(objectError{"/v1/x", tt.err}), api.ExitCode(tt.err); got != want {
			t.Errorf("%s: the exit code is %d when it is about something, want %d", tt.name, got, want)
		}
	}
}

// A signal determines the exit code, whatever error the command would report.
func TestSignals(t *testing.T) {
	t.Parallel()
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(signalError(signal))
		var c console
		if got := run(ctx, []string{"corral", "--server", "unix:/nowhere/at/all", "site", "list"}, stdio{nil, &c.out, &c.err}); got != want || c.err.Len() > 0 {
			t.Errorf("after %s: exit code %d, stderr %q, want %d and nothing", signal, got, c.err.String(), want)
		}
	}
}

// A silence is a stdin that never provides any input.
type silence struct {
	signal func()
	over   <-chan struct{}
}

func (s silence) Read([]byte) (int, error) {
	s.signal()
	<-s.over
	return 0, io.EOF
}

// A signal also ends a command that is reading input.
func TestSignalsEndReading(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "w.json")
	if err := os.WriteFile(file, []byte(`{"name": "w"`+strings.Repeat(" ", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	defer close(over)
	for _, args := range [][]string{{"workflow", "validate", file}, {"workflow", "show", file}, {"run", file}, {"site", "create", "-f", "-"}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := func() { cancel(signalError(syscall.SIGTERM)) }
		if args[0] != "site" {
			stop()
		}
		var c console
		if got := run(ctx, append([]string{"corral"}, args...), stdio{silence{stop, over}, &c.out, &c.err}); got != 143 || c.err.Len() > 0 {
			t.Errorf("corral %s: exit code %d, stderr %q, want 143 and nothing", args, got, c.err.String())
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1234 * time.Microsecond: "1.2ms", 45678 * time.Microsecond: "46ms", 1234 * time.Millisecond: "1.23s",
		34567 * time.Millisecond: "34.6s", 90 * time.Second: "1m30s", 2 * time.Hour: "2h", 150 * time.Minute: "2h30m", -1234 * time.Millisecond: "-1.23s",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%s) = %s, want %s", d, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Minute: "1h30m", time.Minute: "1m", 10 * time.Second: "10s", 0: "0s", time.Hour + 5*time.Second: "1h0m5s", 20 * time.Hour: "20h",
	} {
		if got := short(d.String()); got != want {
			t.Errorf("short(%s) = %s, want %s", d, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for mib, want := range map[int]string{512: "512 MiB", 1023: "1023 MiB", 1024: "1 GiB", 12052: "11.8 GiB", 1 << 20: "1024 GiB"} {
		if got := size(mib); got != want {
			t.Errorf("size(%d) = %s, want %s", mib, got, want)
		}
	}
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.Date(2026, 1, 2, 3, 4, 5, ms*1e6, time.Local) }
	setup := corral.Job{ID: 1, Kind: corral.SetupJob, SubmittedAt: at(0), StartedAt: at(10), EndedAt: at(250)}
	first := corral.Job{ID: 2, Kind: corral.PilotJob, SubmittedAt: at(300), StartedAt: at(320), EndedAt: at(900)}
	second := corral.Job{ID: 3, Kind: corral.PilotJob, SubmittedAt: at(910), StartedAt: at(950)}
	var c console
	glideinVerbs{c.printer(formTable)}.printTimeline(corral.Timeline(setup, first, second))
	want := `EVENT             AT            SINCE FIRST  TOOK
SetupSubmitted    03:04:05.000  0s
SetupStarted      03:04:05.010  10ms
SetupFinished     03:04:05.250  250ms        setup 250ms
GlideinSubmitted  03:04:05.300  300ms
GlideinStarted    03:04:05.320  320ms        allocation 20ms
GlideinFinished   03:04:05.900  900ms        runtime 580ms
GlideinSubmitted  03:04:05.910  910ms
GlideinStarted    03:04:05.950  950ms        allocation 40ms
`
	if diff := cmp.Diff(want, c.out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.out.Reset()
	glideinVerbs{c.printer(formTable)}.printTimeline(nil)
	if c.out.Len() > 0 {
		t.Errorf("without events: %q", c.out.String())
	}
}

// An error about a field names the flag that sets the field.
func TestFieldsAreNamedByTheirFlags(t *testing.T) {
	t.Parallel()
	p := &printer{}
	flags := append(glideinVerbs{p}.createCommand().Flags, runVerbs{p}.runCommand().Flags...)
	for _, tt := range []struct{ says, want string }{
		{"walltime_s: 1s is short", "--walltime: 1s is short"},
		{"not_before: it is late", "--not-before: it is late"},
		{"default_runtime_s: -1s is too short", "--default-runtime: -1s is too short"},
		{"memory_mib: 0", "--memory: 0"},
		{"labels.colour: too long", "labels.colour (--label): too long"},
		{"site_options[1]: no option", "site_options[1] (--site-opt): no option"},
		{"site_options: a line is empty", "--site-opt: a line is empty"},
		{"cpus: 0 is too few", "--cpus: 0 is too few"},
		{"body: it is empty", "body: it is empty"},
		{"no place", "no place"},
	} {
		if got := withFlag(errors.New(tt.says), flags); got != tt.want {
			t.Errorf("withFlag(%q) = %q, want %q", tt.says, got, tt.want)
		}
	}
	missing := corral.ErrorAt(corral.NotFound, "id", "no run 999")
	if got := withFlag(missing, flags); got != "no run 999" {
		t.Errorf("withFlag(%q) = %q", missing, got)
	}
}

// An unknown value is not printed as a number.
func TestUnknownSizes(t *testing.T) {
	t.Parallel()
	var c console
	if err := probeTable.show(c.printer(formTable), api.Probe{Facts: corral.SiteFacts{FreeMiB: -1}}); err != nil {
		t.Fatal(err)
	}
	if err := glideinTable.show(c.printer(formTable), corral.Glidein{}); err != nil {
		t.Fatal(err)
	}
	if got := c.out.String(); !strings.Contains(got, "free                 not known\n") || strings.Contains(got, "MiB") {
		t.Errorf("shown is:\n%s", got)
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ words, want string }{
		{"gl", "glidein"}, {"run", "run runs"}, {"glidein re", "remove"}, {"glidein create --wa", "--walltime --wait"},
		{"glidein create --resubmit ", "never forever until="}, {"-o ", "table json yaml"}, {"site list -o j", "json"},
		{"completion ", "bash zsh fish"}, {"nothing ", ""}, {"workflow show ", ""}, {"workflow convert w.dax --to ", "wfformat dagman"}, {"workflow con", "convert"}, {"--server unix:/nowhere site show ", ""},
		{"--server=unix:/nowhere run --cluster ", ""}, {"site list -", "-a -o -q -h"},
	} {
		var out bytes.Buffer
		app := (&printer{}).newApp()
		complete(t.Context(), app, strings.Split(tt.words, " "), &out)
		got := strings.Join(strings.Fields(out.String()), " ")
		if tt.words == "site list -" {
			got = strings.Join(shortOnes(strings.Fields(got)), " ")
		}
		if got != tt.want {
			t.Errorf("complete(%q) = %q, want %q", tt.words, got, tt.want)
		}
	}
}

func shortOnes(flags []string) (out []string) {
	for _, f := range flags {
		if !strings.HasPrefix(f, "--") {
			out = append(out, f)
		}
	}
	return out
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line  string
		width int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"×××", 3, "×××"}, {"××××", 3, "××…"}, {"", 3, ""}} {
		if got := truncate(tt.line, tt.width); got != tt.want {
			t.Errorf("cut(%q, %d) = %q, want %q", tt.line, tt.width, got, tt.want)
		}
	}
}
