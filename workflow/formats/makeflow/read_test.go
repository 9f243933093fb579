package makeflow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/makeflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

const mib = 1 << 20

// environment looks up variables that a file does not define.
func environment(name string) (string, bool) {
	v, ok := map[string]string{"USER": "ann", "MEMORY": "800"}[name]
	return v, ok
}

func readString(s string, opts workflow.Options) (*workflow.Workflow, []workflow.Warning, error) {
	return makeflow.Read(context.Background(), strings.NewReader(s), "w.makeflow", opts)
}

func mustRead(t testing.TB, s string) *workflow.Workflow {
	t.Helper()
	wf, warnings, err := readString(s, workflow.Options{Env: environment})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Read: %v, warnings %v", err, warnings)
	}
	return wf
}

// shell runs commands.
func shell(command string) []string { return []string{"/bin/sh", "-c", command} }

// env returns an environment from names and values.
func env(all ...string) map[string]string {
	m := make(map[string]string)
	for i := 0; i < len(all); i += 2 {
		m[all[i]] = all[i+1]
	}
	return m
}

// TestEndsOfLinesOfTwoBytes: a file with two-byte line endings yields the same workflow as a file with one-byte
// endings.
func TestEndsOfLinesOfTwoBytes(t *testing.T) {
	t.Parallel()
	const text = "A=x\na: b \\\n c\n\tcp b $A\n"
	want, got := mustRead(t, text), mustRead(t, strings.ReplaceAll(text, "\n", "\r\n"))
	if diff := cmp.Diff(want.Tasks, got.Tasks); diff != "" {
		t.Error(diff)
	}
}

// The example of the manual, with categories and sizes: rules in any order, ordered by files.
func TestRead(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, `# capitol.makeflow
CURL=/usr/bin/curl
CONVERT = "convert"
URL=http://example.org/capitol.jpg   # the source

CATEGORY="merge"
MEMORY=50
.SIZE out/capitol.jpg 2K
capitol.gif: out/capitol.jpg ./capitol.90.jpg \
  capitol.180.jpg
	$CONVERT -delay 10 $(URL) \
	  out/capitol.jpg   capitol.gif

.MAKEFLOW CATEGORY turn
.MAKEFLOW CORES 2
.MAKEFLOW DISK 1G
.MAKEFLOW WALL_TIME 90
capitol.90.jpg: out/capitol.jpg
	${CONVERT} -swirl 90 out/capitol.jpg capitol.90.jpg
capitol.180.jpg second: out/capitol.jpg
@CORES=4

	$CONVERT -swirl 180 out/capitol.jpg capitol.180.jpg && touch second

CATEGORY=
out/capitol.jpg:
	A=1 $CURL -o out/capitol.jpg $URL
`)
	const turn = time.Second * 90
	want := []workflow.Task{
		{ID: "capitol.gif", Name: "merge", Inputs: []string{"out/capitol.jpg", "capitol.90.jpg", "capitol.180.jpg"},
			Argv:    shell(`"convert" -delay 10 http://example.org/capitol.jpg out/capitol.jpg capitol.gif`),
			Env:     env("CATEGORY", "merge", "MEMORY", "50"),
			Outputs: []string{"capitol.gif"}, Resources: corral.Resources{CPUs: 1, MemoryMiB: 50}},
		{ID: "capitol.90.jpg", Name: "turn", Inputs: []string{"out/capitol.jpg"}, Outputs: []string{"capitol.90.jpg"},
			Argv: shell(`"convert" -swirl 90 out/capitol.jpg capitol.90.jpg`), Timeout: turn,
			Env:       env("CATEGORY", "turn", "CORES", "2", "DISK", "1G", "MEMORY", "800", "WALL_TIME", "90"),
			Resources: corral.Resources{CPUs: 2, MemoryMiB: 800, DiskMiB: 1024}},
		{ID: "capitol.180.jpg", Name: "turn", Inputs: []string{"out/capitol.jpg"}, Outputs: []string{"capitol.180.jpg", "second"},
			Argv: shell(`"convert" -swirl 180 out/capitol.jpg capitol.180.jpg && touch second`), Timeout: turn,
			Env:       env("CATEGORY", "turn", "CORES", "4", "DISK", "1G", "MEMORY", "800", "WALL_TIME", "90"),
			Resources: corral.Resources{CPUs: 4, MemoryMiB: 800, DiskMiB: 1024}},
		{ID: "out:capitol.jpg", Name: "curl", Outputs: []string{"out/capitol.jpg"},
			Argv:      shell(`A=1 /usr/bin/curl -o out/capitol.jpg http://example.org/capitol.jpg`),
			Env:       env("CATEGORY", "", "MEMORY", "800"),
			Resources: corral.Resources{CPUs: 1, MemoryMiB: 800}},
	}
	if diff := cmp.Diff(want, wf.Tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if wf.Name != "w" || wf.Graph.Edges() != 5 || wf.FileSizes["out/capitol.jpg"] != 2048 {
		t.Errorf("name %q, %d edges, sizes %v", wf.Name, wf.Graph.Edges(), wf.FileSizes)
	}
	if err := wf.Runnable(); err != nil {
		t.Error(err)
	}
	if got := wf.Place(1).String(); got != "w.makeflow:18" {
		t.Errorf("Place(1) = %s", got)
	}
}

// The expansions of commands: each was also run by Makeflow 9.9, with the same result.
func TestCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"out:\n\techo  a \t b > out", "echo a b > out"},
		{"A=1 2\nB=\"x $A\"\nout:\n\techo $A $(B) 'a\\\\tb $A' > out", `echo 1 2 "x 1 2" 'a\tb $A' > out`},
		{"out:\n\tprintf \"%s|\" \"q\\\\\\\\t\" \\$HOME a\\\nb > out # c", `printf "%s|" "q\\t" $HOME a b > out`},
		{"C=x y  \nout:\n\techo \"[$C]\" > out", `echo "[x y  ]" > out`},
		{"C=x y  # comment\nout:\n\techo \"[$C]\" > out", `echo "[x y]" > out`},
		{"A=1\nA+=2\nout:\n@A+=3\n    echo ${A}y $(A)x > out", "echo 1 2 3y 1 2 3x > out"},
		{"A = 1\nA += 2\nout:\n\techo $A> out", "echo 1 2> out"},
		{"out:\n\techo \"a\n b\" > out", "echo \"a\n b\" > out"},
		{"out:\n\techo 'a\n b' > out", "echo 'a\n b' > out"},
		{"A=a\\tb\nB=x\\\n  y\nout:\n\techo $A $B> out", "echo a b x y> out"},
		{"out:\n\tfor f in 1 2; do echo \\$f; done > out & wait", "for f in 1 2; do echo $f; done > out & wait"},
		{"out:\n\techo \"it's\" > out", `echo "it's" > out`},
		{"A=\"a # b\"\nout:\n\techo $A > out", `echo "a # b" > out`},
		{"out:\n\techo $USER > out", "echo ann > out"},
		{"A=1\nout:\n\t@A=2\n\techo $A > out", "echo 2 > out"},
		{"A=1\nout:\nA=2\n\techo $A > out", "echo 2 > out"},
		{"out:\n\n# comment\n\t# comment\n\techo 1 > out\n\t\n", "echo 1 > out"},
		{"CATEGORY=x\nA=1\nA+=2\nout:\n\techo $A $CATEGORY > out", "echo 1 2 x > out"},
		{"CATEGORY=x\nA=1\nCATEGORY=y\nA=3\nCATEGORY=x\nout:\n\techo $A > out", "echo 1 > out"},
	} {
		wf := mustRead(t, c.text)
		if got := wf.Tasks[0].Argv[2]; got != c.want {
			t.Errorf("%q:\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, targets, sources string }{
		{"a b:c d", "a,b", "c,d"},
		{"a :", "a", ""},
		{"D=dir\n$D/a $(D)b: ./x ${D}/../y z/", "dir/a,dirb", "x,y,z"},
		{"D=c d\n\"x $D\" 'y z' e: $D\\\n f", "x c d,y z,e", "c,d,f"},
		{"a\\:b: c\\ d -x- a-b", "a:b", "c d,-x-,a-b"},
		{"a a: b b", "a", "b"},
		{" a: b # c d", "a", "b"},
		{"a=b: c\n", "", ""}, // an assignment
	} {
		wf, _, err := readString(c.text+"\n\ttrue\n", workflow.Options{})
		if c.targets == "" {
			if err == nil {
				t.Errorf("%q: no error", c.text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		got := wf.Tasks[0]
		if strings.Join(got.Outputs, ",") != c.targets || strings.Join(got.Inputs, ",") != c.sources {
			t.Errorf("%q: targets %q, sources %q", c.text, got.Outputs, got.Inputs)
		}
	}
}

// Exported variables form the environment of every task, each with its value at the task's rule, wherever the export
// statement is.
func TestExport(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, "export A=5 B\nexport USER NONE\nB=7\none:\n\ttrue\nB=\"8 8\"\ntwo:\n@A=6\n\ttrue\nB+=9\nexport B\nthree:\n\ttrue\n")
	want := []map[string]string{
		{"A": "5 B", "B": "7", "USER": "ann"}, {"A": "6", "B": `"8 8"`, "USER": "ann"}, {"A": "5 B", "B": `"8 8" 9`, "USER": "ann"},
	}
	for i := range wf.Tasks {
		if diff := cmp.Diff(want[i], wf.Tasks[i].Env); diff != "" {
			t.Errorf("task %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 120)
	wf := mustRead(t, "d/e/f:\n\ttrue\n"+long+":\n\ttrue\na\\:b:\n\t> x y=1 'bin/prog' x\n/abs:\n\t(cd d; ./p)\n")
	var ids, names []string
	for i := range wf.Tasks {
		ids, names = append(ids, wf.Tasks[i].ID), append(names, wf.Tasks[i].Name)
	}
	if got := strings.Join(ids, " "); got != "d:e:f rule:2 rule:3 rule:4" {
		t.Errorf("ids %s", got)
	}
	if got := strings.Join(names, " "); got != "true true x cd" {
		t.Errorf("names %s", got)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	doubling := "A=" + strings.Repeat("x", 1000) + "\n"
	for range 20 {
		doubling += "A=$A$A\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "w.makeflow: the file is empty"},
		{"not UTF-8", "a:\n\techo \xe9\n", "w.makeflow:2: the line is not UTF-8; convert the file"},
		{"no rules", "# nothing\n", "w.makeflow:2: the workflow has no tasks"},
		{"no rule at all", "JOB a a.sub\n", `w.makeflow:1: "JOB a a.sub" is not a rule (FILES: FILES), a variable (NAME=VALUE) or a command (after a tab)`},
		{"other operator", "A:=1\n", `w.makeflow:1: the rule has no command`},
		{"another operator", "A?=1\n", `w.makeflow:1: "A?=1" is not a rule (FILES: FILES), a variable (NAME=VALUE) or a command (after a tab)`},
		{"no command", "a: b\n\nc: d\n\ttrue\n", "w.makeflow:1: the rule has no command before the next one (w.makeflow:3)"},
		{"no command at the end", "a:\n\t\n", "w.makeflow:1: the rule has no command"},
		{"no rule for a command", "\ttrue\n", "w.makeflow:1: there is a command without a rule; a rule has one command: join several with a semicolon"},
		{"second command", "a:\n\ttrue\n\tfalse\n", "w.makeflow:3: there is a command without a rule; a rule has one command: join several with a semicolon"},
		{"empty command", "a:\n\tLOCAL\n", "w.makeflow:2: the rule's command is empty"},
		{"no target", ": b\n\ttrue\n", "w.makeflow:1: the rule has no target"},
		{"two rules", "a b:\n\ttrue\nc ./b:\n\ttrue\n", `w.makeflow:3: file "b" is a target of two rules (w.makeflow:1)`},
		{"cycle", "a: c\n\ttrue\nb: a\n\ttrue\nc: b\n\ttrue\n", "w.makeflow:1: the tasks form a cycle: a -> b -> c -> a"},
		{"cycle of one", "b:\n\ttrue\na: b ./a\n\ttrue\n", "w.makeflow:3: the tasks form a cycle: a -> a"},
		{"colon", "a: b: c\n\ttrue\n", `w.makeflow:1: there is a second colon; write \: in the name of a file`},
		{"remote name", "a: b->c\n\ttrue\n", "w.makeflow:1: remote names (file->name) are not supported; the command has to use the name of the file"},
		{"makeflow", "a:\n\tLOCAL MAKEFLOW b.makeflow\n", "w.makeflow:2: nested makeflows are not supported; convert each of them separately"},
		{"undefined", "a:\n\n\techo $B\n", `w.makeflow:3: variable "B" is defined neither before this line nor in the environment`},
		{"undefined in a value", "A=$B\n", `w.makeflow:1: variable "A": variable "B" is defined neither before this line nor in the environment`},
		{"defined too late", "a:\n\techo $B\nB=1\n", `w.makeflow:2: variable "B" is defined neither before this line nor in the environment`},
		{"of another category", "CATEGORY=x\nB=1\nCATEGORY=y\na:\n\techo $B\n", `w.makeflow:5: variable "B" is defined neither before this line nor in the environment`},
		{"automatic", "a: b\n\techo $@ x\n", `w.makeflow:2: "$@ x": a variable name must follow $; automatic variables such as $@ are not part of Makeflow, and \$ is for the shell`},
		{"shell", "a: b\n\techo $((1+2))\n", `w.makeflow:2: "$((1+2))": ")" does not close the name of a variable`},
		{"function", "a: $(wildcard *.c)\n\ttrue\n", `w.makeflow:1: "$(wildcard *.c)": ")" does not close the name of a variable`},
		{"without end", "A=$(B\na:\n\ttrue\n", `w.makeflow:1: variable "A": "$(B": ")" does not close the name of a variable`},
		{"quote without end", "a:\n\ttrue\nA=\"b\nb:\n", `w.makeflow:3: a quote (") is not closed before the end of the file`},
		{"doubling", doubling, `w.makeflow:12: variable "A": the value is longer than 1 MiB`},
		{"cores", "CORES=two\na:\n\ttrue\n", `w.makeflow:2: CORES: "two" is not an integer in range with an optional suffix K, M, G or T`},
		{"memory", ".MAKEFLOW MEMORY -1\na:\n\ttrue\n", `w.makeflow:2: MEMORY: "-1" is not an integer in range with an optional suffix K, M, G or T`},
		{"directive", ".UMBRELLA SPEC x\n", "w.makeflow:1: .UMBRELLA is not supported; want .MAKEFLOW, .RESOURCE or .SIZE"},
		{"resource", ".MAKEFLOW SPEED 3\n", "w.makeflow:1: .MAKEFLOW SPEED is not supported; want CATEGORY, CORES, MEMORY, DISK, GPUS or WALL_TIME"},
		{"arguments", ".MAKEFLOW CORES\n", "w.makeflow:1: .MAKEFLOW has 1 arguments, want 2: a name and a value"},
		{"size", ".SIZE x big\n", `w.makeflow:1: .SIZE: "big" is not an integer in range with an optional suffix K, M, G or T`},
		{"export", "export # nothing\n", "w.makeflow:1: export names no variable"},
	} {
		wf, _, err := readString(c.text, workflow.Options{})
		if err == nil || wf != nil {
			t.Errorf("%s: read %v, want an error", c.name, wf)
			continue
		}
		if err.Error() != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, err, c.want)
		}
		var e *corral.Error
		if !errors.As(err, &e) || e.Kind != corral.Invalid || !strings.HasPrefix(e.Place, "w.makeflow") {
			t.Errorf("%s: %#v is not Invalid with a place", c.name, err)
		}
	}
}

func TestReadWarns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"local", "a:\n\tLOCAL true\nL=LOCAL\nb:\n\t$L true\n",
			"w.makeflow:2: LOCAL is ignored: the task runs on a worker like the others (and 1 more like it)"},
		{"absolute sources", "a: /bin/sh /bin/cat\n\ttrue\nb: a /bin/sh /made\n\ttrue\n/made:\n\ttrue\n",
			`w.makeflow:1: source "/bin/sh" is an absolute path; it must exist on every worker (and 1 more like it)`},
		{"batch options", "BATCH_OPTIONS=-q long\na:\n\ttrue\n", "w.makeflow:1: BATCH_OPTIONS is ignored: it is for a batch system"},
		{"mode", ".MAKEFLOW MODE FIXED\na:\n\ttrue\n", "w.makeflow:1: .MAKEFLOW MODE is ignored"},
	} {
		wf, warnings, err := readString(c.text, workflow.Options{})
		if err != nil || len(warnings) != 1 || warnings[0].String() != c.want {
			t.Errorf("%s: %v, %v, want %s", c.name, err, warnings, c.want)
			continue
		}
		if c.name == "absolute sources" && wf.Graph.Edges() != 2 {
			t.Errorf("%d edges, want 2", wf.Graph.Edges())
		}
		if _, _, err := readString(c.text, workflow.Options{Strict: true}); err == nil || err.Error() != c.want {
			t.Errorf("%s: strict: %v, want %q", c.name, err, c.want)
		}
	}
}

// An endless text is refused, and variables that contain each other are not expanded without limit.
func TestReadBounds(t *testing.T) {
	t.Parallel()
	const long = "a line, with its continuations and what it quotes, is longer than 256 KiB"
	for name, c := range map[string]struct{ before, fill, says string }{
		"a variable":     {"A=", "x", long},
		"a quote":        {"A='", "x\n", long},
		"continuations":  {"A=", "\\\n", long},
		"a command":      {"a:\n\t", "x", long},
		"sources":        {"a:", " x", long},
		"a comment":      {"#", "x", long},
		"empty lines":    {"", "\n", "the workflow is longer than 1 MiB"},
		"rules":          {"", "a:\n\ttrue\n", `file "a" is a target of two rules (w.makeflow:1)`},
		"values":         {"A=" + strings.Repeat("x", 1000) + "\n", "A=y$A\nr$A:\n\ttrue\n", "the values of variables are together longer than 256 KiB"},
		"commands":       {"A=" + strings.Repeat("x", 1000) + "\n", ".SIZE a 1\nB=$A\n", "with its variables expanded, the workflow is longer than 1 MiB"},
		"one that grows": {"A=x\n", "A+=$A\n", "the values of variables are together longer than 256 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := io.MultiReader(strings.NewReader(c.before), &repeating{part: c.fill})
			_, _, err := makeflow.Read(t.Context(), text, "w.makeflow", workflow.Options{MaxValue: mib / 4, MaxBytes: mib})
			if corral.KindOf(err) != corral.Invalid || !strings.HasSuffix(err.Error(), ": "+c.says) {
				t.Errorf("Read = %v, want %s", err, c.says)
			}
		})
	}
	nested := "A0=\n" // each contains the previous one twice, and the first is empty
	for i := range 40 {
		nested += fmt.Sprintf("A%d=\\$A%d\\$A%d\n", i+1, i, i)
	}
	for want, text := range map[string]string{
		"w.makeflow:42: variables are nested more than 32 deep":           nested + "a: $A40\n\ttrue\n",
		"w.makeflow:43: variables are nested more than 32 deep":           nested + "a:\n\ttrue $A40\n",
		"w.makeflow:42: the expansion of variables is longer than 16 MiB": nested + "a: $A30\n\ttrue\n",
		"w.makeflow:43: the expansion of variables is longer than 16 MiB": nested + "a:\n\ttrue $A30\n",
	} {
		if _, _, err := readString(text, workflow.Options{}); err == nil || err.Error() != want {
			t.Errorf("Read = %v, want %s", err, want)
		}
	}
}

// A short text may also represent any number of files; each of these files is counted.
func TestTheNumberOfFilesIsBounded(t *testing.T) {
	t.Parallel()
	const n = 1000
	var text strings.Builder
	text.WriteString("A=" + strings.Repeat("x ", n) + "\nB=" + strings.Repeat("\\$A ", n) + "\n")
	for i := range n {
		fmt.Fprintf(&text, "r%d: $A\n\ttrue\n", i)
	}
	few := text.String()
	for _, c := range []struct {
		text string
		opts workflow.Options
		want string
	}{
		{few, workflow.Options{MaxBytes: 20 * n * 100}, "w.makeflow:225: with its variables expanded, the workflow is longer than 2000000 bytes"},
		{"\n" + few + "all: $B $B\n\ttrue\n", workflow.Options{}, "w.makeflow:2004: variables stand for more than 1000000 files"},
		{few, workflow.Options{}, "<nil>"},
	} {
		if _, _, err := readString(c.text, c.opts); fmt.Sprint(err) != c.want {
			t.Errorf("Read = %v, want %s", err, c.want)
		}
	}
}

type repeating struct {
	part string
	at   int
}

func (r *repeating) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.part[r.at]
		r.at = (r.at + 1) % len(r.part)
	}
	return len(p), nil
}

var errStop = errors.New("stop")

// If a caller cancels the reading, the error is not about the file.
func TestTheEndOfAContextEndsReading(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	_, _, err := makeflow.Read(ctx, strings.NewReader("a:\n\ttrue\n"), "w.makeflow", workflow.Options{})
	if !errors.Is(err, errStop) || corral.KindOf(err) != corral.Internal {
		t.Errorf("Read = %v (%s), want the end of the context", err, corral.KindOf(err))
	}
}

// Exported variables are looked up for each rule: a file with many rules and many exported variables is refused, or
// reading it ends when its context is cancelled.
func TestTheWorkOfExportsIsBounded(t *testing.T) {
	t.Parallel()
	const n = 100
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "export v%d\nt%[1]d:\n\ttrue\n", i)
	}
	looked := 0 // number of lookups of an exported variable
	ctx, cancel := context.WithCancelCause(t.Context())
	opts := workflow.Options{MaxBytes: 10_000, Env: func(name string) (string, bool) {
		if name[0] == 'v' {
			looked++
		}
		return "", false
	}}
	_, _, err := makeflow.Read(ctx, strings.NewReader(text.String()), "w.makeflow", opts)
	want := "w.makeflow:35: with its variables expanded, the workflow is longer than 10000 bytes"
	if corral.KindOf(err) != corral.Invalid || err.Error() != want || looked > 20*n {
		t.Errorf("Read = %v after %d look-ups, want %s", err, looked, want)
	}

	looked = 0
	opts = workflow.Options{Env: func(name string) (string, bool) {
		if name[0] == 'v' {
			looked++
			cancel(errStop)
		}
		return "", false
	}}
	_, _, err = makeflow.Read(ctx, strings.NewReader(text.String()), "w.makeflow", opts)
	if !errors.Is(err, errStop) || looked > n {
		t.Errorf("Read = %v after %d look-ups, want the cause after those of one rule", err, looked)
	}
}

func TestSniff(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"a: b\n\ttrue\n": true, "a:\n\n# c\n  true\n": true, "A=1\n.MAKEFLOW CATEGORY x\n": true,
		"JOB a a.sub\nPARENT a CHILD b\n": false, "once upon a time\n there was\n": false, "": false,
	} {
		if got := makeflow.Sniff([]byte(text)); got != want {
			t.Errorf("Sniff(%q) = %v", text, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"A=1\nA+=$A \"$A\" 'x'\nexport A USER\n.MAKEFLOW CATEGORY c\nCORES=2\nb \"c d\": a\n@A=3\n\tLOCAL echo $A ${A} $(A) > b # c\n",
		"a: b\n\tx\nb: a\n\ty\n", "a\\:b -> c:\n", ".SIZE a 3K\na:\n  true\\\n false\n", "A=\\$A\na:\n\t$A\n", "a:/x\n\t\"a\nb\"\n/x:\n\ty",
	} {
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, strict bool) {
		wf, _, err := makeflow.Read(t.Context(), bytes.NewReader(b), "w.makeflow",
			workflow.Options{Strict: strict, MaxBytes: mib, Env: environment})
		var e *corral.Error
		switch {
		case err != nil && (!errors.As(err, &e) || e.Kind != corral.Invalid || !strings.HasPrefix(e.Place, "w.makeflow")):
			t.Errorf("%#v is not Invalid with a place", err)
		case err == nil:
			var out bytes.Buffer
			if err := wfformat.Write(&out, wf); err != nil {
				t.Fatal(err)
			}
			again, _, err := wfformat.Read(t.Context(), &out, "again", workflow.Options{})
			if err != nil {
				t.Fatalf("reading what was written: %v", err)
			}
			if diff := cmp.Diff(wf.Summary(), again.Summary()); diff != "" {
				t.Errorf("summary changed:\n%s", diff)
			}
			_ = wf.Runnable() // must not panic
		}
	})
}
