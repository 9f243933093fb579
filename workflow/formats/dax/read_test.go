package dax_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dax"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

const mib = 1 << 20

// document returns a DAX whose elements begin on line 2.
func document(elements ...string) string {
	return `<adag name="w" version="2.1">` + "\n" + strings.Join(elements, "\n") + "\n</adag>\n"
}

// job returns a job; inside is its content.
func job(id, inside string) string {
	return fmt.Sprintf(`<job id="%s" name="make">%s</job>`, id, inside)
}

// after returns the edges from the parents to a child.
func after(child string, parents ...string) string {
	text := fmt.Sprintf(`<child ref="%s">`, child)
	for _, p := range parents {
		text += fmt.Sprintf(`<parent ref="%s"/>`, p)
	}
	return text + "</child>"
}

func readString(s string, opts workflow.Options) (*workflow.Workflow, []workflow.Warning, error) {
	return dax.Read(context.Background(), strings.NewReader(s), "w.dax", opts)
}

func mustRead(t testing.TB, s string) *workflow.Workflow {
	t.Helper()
	wf, warnings, err := readString(s, workflow.Options{})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Read: %v, warnings %v", err, warnings)
	}
	return wf
}

// Version 3 in the form written by Pegasus: a catalog of executables, arguments that contain names of files, streams,
// profiles.
func TestReadVersion3(t *testing.T) {
	t.Parallel()
	wf := mustRead(t, `<?xml version="1.0" encoding="UTF-8"?>
<!-- made by hand -->
<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="3.6" name="diamond">
 <metadata key="for">people</metadata>
 <executable namespace="d" name="preprocess" version="4.0" arch="x86_64" os="linux" installed="true">
  <pfn url="gsiftp://far.example.org/bin/preprocess" site="far"/>
  <pfn url="file:///usr/bin/preprocess" site="local"/>
 </executable>
 <job id="A" namespace="d" name="preprocess" version="4.0" node-label="first">
  <metadata key="size">1</metadata>
  <argument>-a top -i <file name="f.a"/> -o <file
   name="f b1"/> 'two words' "" x\ y "it's \"so\"" -p<file name="f.c"/></argument>
  <profile namespace="env" key="HOME_OF"> /data </profile>
  <profile namespace="pegasus" key="runtime">90</profile>
  <profile namespace="pegasus" key="cores">4</profile>
  <profile namespace="condor" key="request_memory">2048</profile>
  <profile namespace="condor" key="request_disk">1025</profile>
  <profile namespace="pegasus" key="gpus">1</profile>
  <profile namespace="pegasus" key="label"> p1 </profile>
  <profile namespace="dagman" key="RETRY">3</profile>
  <stdin name="f.in" link="input"/>
  <stdout name="f.out" link="output"/>
  <stderr name="f.err" link="output"/>
  <uses name="f.a" link="input"/>
  <uses name="f b1" link="output" register="true" transfer="true" size="12.5"/>
  <uses name="preprocess" executable="true"/>
 </job>
 <job id="B" name="analyze"><argument/><uses name="f b1" link="INPUT"/></job>
 <child ref="B"><parent ref="A" edge-label="e"/></child>
</adag>`)
	three := 3
	want := []workflow.Task{
		{
			ID: "A", Name: "preprocess",
			Argv: []string{"/usr/bin/preprocess", "-a", "top", "-i", "f.a", "-o", "f b1", "two words", "", "x y", `it's "so"`, "-pf.c"},
			Env:  map[string]string{"HOME_OF": "/data"}, Inputs: []string{"f.in", "f.a"},
			Outputs:   []string{"f.out", "f.err", "f b1"},
			Streams:   workflow.Streams{Stdin: "f.in", Stdout: "f.out", Stderr: "f.err"},
			Resources: corral.Resources{CPUs: 4, MemoryMiB: 2048, DiskMiB: 2, GPUs: 1},
			Estimate:  90 * time.Second, Retries: &three, Control: &workflow.Control{Label: "p1"},
		},
		{ID: "B", Name: "analyze", Argv: []string{"analyze"}, Inputs: []string{"f b1"}, Resources: corral.Resources{CPUs: 1}},
	}
	if diff := cmp.Diff(want, wf.Tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if wf.Name != "diamond" || wf.Graph.Edges() != 1 || wf.FileSizes["f b1"] != 13 {
		t.Errorf("name %q, %d edges, sizes %v", wf.Name, wf.Graph.Edges(), wf.FileSizes)
	}
	if err := wf.Runnable(); err != nil {
		t.Error(err)
	}
}

// In the generator's dialect, runtimes count as measured, the sizes of uses count as bytes read and written, and jobs
// have no command.
func TestReadTheGeneratorsDialect(t *testing.T) {
	t.Parallel()
	text := document(
		`<filename file="x"/><job id="a" name="make" runtime="1.5" cores="2"><uses file="x" link="output" size="100"/></job>`,
		`<job id="b" name="use" runtime="0"><uses file="x" link="input" size="70"/><uses file="y" link="input" size="5"/></job>`,
		`<job id="c" name="none" runtime="0"/>`,
		`<job id="d" name="plan"><uses file="x" link="input" size="100"/><uses file="y" link="input" size="6"/></job>`,
		after("b", "a"), after("d", "a"))
	wf, warnings, err := readString(text, workflow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []workflow.Task{
		{ID: "a", Name: "make", Outputs: []string{"x"}, Resources: corral.Resources{CPUs: 2}, Estimate: 1500 * time.Millisecond,
			Execution: workflow.Execution{Runtime: 1500 * time.Millisecond, WrittenBytes: 100}},
		{ID: "b", Name: "use", Inputs: []string{"x", "y"}, Resources: corral.Resources{CPUs: 1},
			Execution: workflow.Execution{ReadBytes: 75}},
		{ID: "c", Name: "none", Resources: corral.Resources{CPUs: 1}, Instant: true},
		{ID: "d", Name: "plan", Inputs: []string{"x", "y"}, Resources: corral.Resources{CPUs: 1}},
	}
	if diff := cmp.Diff(want, wf.Tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"x": 100, "y": 6}, wf.FileSizes); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
	const warning = `w.dax:3: file "x" has 70 bytes here, and 100 elsewhere; the writer's size is used, or else the largest ` +
		`(and 1 more like it)`
	if len(warnings) != 1 || warnings[0].String() != warning {
		t.Errorf("warnings %v, want %s", warnings, warning)
	}
	if n := wf.Summary().Unestimated; n != 1 {
		t.Errorf("%d tasks without an estimate, want 1", n)
	}
	err = wf.Runnable()
	if err == nil || !strings.Contains(err.Error(), "it has no command") {
		t.Errorf("Runnable = %v, want no command", err)
	}
}

// The size of a file is the size specified by its writer, in any order of uses, or the largest size if the file has no
// writer.
func TestSizes(t *testing.T) {
	t.Parallel()
	use := func(link string, size int) string {
		return fmt.Sprintf(`<uses file="x" link="%s" size="%d"/>`, link, size)
	}
	for _, tc := range []struct {
		uses []string
		want int64
	}{
		{[]string{use("input", 9), use("output", 4), use("input", 7)}, 4},
		{[]string{use("output", 4), use("input", 9)}, 4},
		{[]string{use("input", 2), use("input", 9), use("input", 3)}, 9},
		{[]string{use("output", 2), use("output", 9)}, 9},
		{[]string{use("inout", 2)}, 2},
	} {
		var jobs []string
		for i, u := range tc.uses {
			jobs = append(jobs, job(fmt.Sprint(i), u))
		}
		wf, _, err := readString(document(jobs...), workflow.Options{})
		if err != nil || wf.FileSizes["x"] != tc.want {
			t.Errorf("%v: %v, want size %d", tc.uses, err, tc.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	a := job("a", "")
	bomb := `<!DOCTYPE adag [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>` + "\n" + document(job("&b;", ""))
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "w.dax: the file is empty"},
		{"blank", " \n", "w.dax:2:1: the file ends before the end of the document"},
		{"no XML", "JOB a a.sub", `w.dax:1: not XML: it begins with "JOB a a.sub"`},
		{"cut", document(a)[:50], "w.dax:2:21: the file ends before the end of the document"},
		{"cut in a word", document(a)[:25], "w.dax:1:26: the file ends before the end of the document"},
		{"no end", `<adag name="w">` + "\n" + a, "w.dax:2:31: the file ends before the end of the document"},
		{"crossed", document("<job id='a'></adag>"), "w.dax:2:20: not XML: element <job> closed by </adag>"},
		{"unquoted", document("<job id=a/>"), "w.dax:2:10: not XML: unquoted or missing attribute value in element"},
		{"two roots", document(a) + "<adag/>", "w.dax:4: there is text after the end of the document"},
		{"junk behind", document(a) + "x", "w.dax:4: there is text after the end of the document"},
		{"text inside", document(a, "oops", a), `w.dax:3: there is text between the elements: "oops"`},
		{"another root", "<workflow/>", "w.dax:1: the document is <workflow>, not <adag>: it is not a DAX"},
		{"version 4", `<adag name="w" version="4.0"/>`, `w.dax:1: version is "4.0"; only DAX 2 and 3 are supported`},
		{"latin", `<?xml version="1.0" encoding="ISO-8859-1"?>` + document(a),
			`w.dax:1:44: not XML: opening charset "ISO-8859-1": the encoding "ISO-8859-1" is not supported; convert the file to UTF-8`},
		{"version of XML", `<?xml version="1.1"?>` + document(a), `w.dax:1:22: not XML: unsupported version "1.1"; only version 1.0 is supported`},
		{"not UTF-8", document(job("\xff", "")), "w.dax:2:12: not XML: invalid UTF-8"},
		{"entities", bomb, "w.dax:1: the document type declares entities or elements, which are not supported; remove it"},
		{"unknown entity", document(job("&x;", "")), "w.dax:2:13: not XML: invalid character entity &x;"},
		{"no jobs", document(), "w.dax:4: the workflow has no tasks"},
		{"no id", document(job("", "")), "w.dax:2: the task has no id"},
		{"duplicate id", document(a, a), `w.dax:3: task "a": another task has the same id (w.dax:2)`},
		{"unknown parent", document(a, "", after("a", "x")), `w.dax:4: task "a": its parent "x" does not exist`},
		{"unknown child", document(a, after("x", "a")), `w.dax:3: task "a": its child "x" does not exist`},
		{"child without ref", document(a, `<child><parent ref="a"/></child>`), "w.dax:3: <child> has no ref"},
		{"parent without ref", document(a, `<child ref="a"><parent/></child>`), `w.dax:3: <parent> in the list of parents of "a", want <parent> with a ref`},
		{"cycle", document(a, job("b", ""), job("c", ""), after("b", "a"), after("c", "b"), after("a", "c")),
			"w.dax:2: the tasks form a cycle: a -> b -> c -> a"},
		{"own parent", document(a, after("a", "a")), "w.dax:2: the tasks form a cycle: a -> a"},
		{"use of nothing", document(job("a", `<uses link="input"/>`)), `w.dax:2: task "a": <uses> names no file`},
		{"stream of nothing", document(job("a", `<stdout/>`)), `w.dax:2: task "a": <stdout> names no file`},
		{"unknown link", document(job("a", "\n"+`<uses file="x" link="in"/>`)),
			`w.dax:3: task "a": file "x": link is "in", want input, output, inout or none`},
		{"link without a value", document(job("a", "\n"+`<uses file="x" link=""/>`)),
			`w.dax:3: task "a": file "x": link is empty, want input, output, inout or none`},
		{"attribute twice", document(`<job id="a" name="n" id="b"/>`), `w.dax:2: not XML: attribute "id" is given twice`},
		{"no size", document(job("a", `<uses file="x" link="input" size="-1KB"/>`)),
			`w.dax:2: task "a": file "x": size: "-1KB" is not a number in range`},
		{"hexadecimal runtime", document(`<job id="a" runtime="0x1p-2"/>`), `w.dax:2: task "a": runtime: "0x1p-2" is not a number in range`},
		{"below any runtime", document(`<job id="a" runtime="-Inf"/>`), `w.dax:2: task "a": runtime: -Inf is negative or too large`},
		{"infinite runtime", document(`<job id="a" runtime="Inf"/>`), `w.dax:2: task "a": runtime: Inf is negative or too large`},
		{"runtime that is none", document(`<job id="a" runtime="NaN"/>`), `w.dax:2: task "a": runtime: "NaN" is not a number in range`},
		{"runtime in words", document(`<job id="a" runtime="long"/>`), `w.dax:2: task "a": runtime: "long" is not a number in range`},
		{"no cores", document(`<job id="a" cores="0"/>`), `w.dax:2: task "a": cores: 0, want 1 to 65536`},
		{"memory in words", document(job("a", `<profile namespace="pegasus" key="memory">2 GB</profile>`)),
			`w.dax:2: task "a": profile pegasus.memory: "2 GB" is not an integer in range`},
		{"open quote", document(job("a", `<argument>-x 'y</argument>`)),
			`w.dax:2: task "a": argument: a quote is not closed, or a backslash is at the end`},
		{"workflow in a workflow", document(`<dax id="sub" file="sub.dax"/>`),
			`w.dax:2: job "sub" is a workflow of its own (<dax>); convert each workflow by itself`},
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
		if !errors.As(err, &e) || e.Kind != corral.Invalid || !strings.HasPrefix(e.Place, "w.dax") {
			t.Errorf("%s: %#v is not Invalid with a place", c.name, err)
		}
	}
}

func TestReadWarns(t *testing.T) {
	t.Parallel()
	writer, other := job("a", `<uses file="x" link="output"/>`), job("b", `<uses file="x" link="input"/>`)
	for _, c := range []struct {
		name, text string
		edges      int
		want       string
	}{
		{"unknown element", document(job("a", "<invoke when='end'>mail</invoke>"), "<transformation/>", "<transformation><uses/></transformation>"), 0,
			"w.dax:2: element <invoke> of a job is ignored\nw.dax:3: element <transformation> is ignored (2 times)"},
		{"unknown profile", document(job("a", `<profile namespace="globus" key="queue">q</profile>`)), 0, "w.dax:2: profile globus.queue is ignored"},
		{"count of jobs", strings.Replace(document(writer), "2.1", `2.1" jobCount="7`, 1), 0, `w.dax:1: jobCount is "7", but there are 1 jobs`},
		{"numbers below 0", document(`<job id="a" runtime="-1.03"><uses file="x" link="input" size="-7"/><uses file="y" link="input" size="-8.5"/></job>`), 0,
			"w.dax:2: a runtime below 0 is ignored\nw.dax:2: a size below 0 is ignored (2 times)"},
		{"no link", document(job("a", `<uses file="x" size="7"/><uses file="p" executable="true"/>`)), 0, "w.dax:2: <uses> without a link is ignored"},
		{"two writers", document(writer, strings.Replace(writer, `"a"`, `"c"`, 1)), 0,
			`w.dax:3: file "x" is written by two tasks, a and c; the workflow can be planned but not run`},
		{"reads without being a child", document(writer, other), 1,
			`w.dax:3: task "b" reads "x", which task "a" writes, but does not come after it; it becomes its child`},
	} {
		wf, warnings, err := readString(c.text, workflow.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, w := range warnings {
			got = append(got, w.String())
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if wf.Graph.Edges() != c.edges {
			t.Errorf("%s: %d edges, want %d", c.name, wf.Graph.Edges(), c.edges)
		}
		if _, _, err := readString(c.text, workflow.Options{Strict: true}); err == nil || err.Error() != got[0] {
			t.Errorf("%s: strict: %v, want %q", c.name, err, got[0])
		}
	}
}

// An executable may be declared anywhere, and a repeated use counts once.
func TestWhatStandsElsewhere(t *testing.T) {
	t.Parallel()
	catalogue := `<executable namespace="n" name="make"><pfn url="file:///bin/made"/></executable>`
	jobs := []string{`<job id="a" namespace="n" name="make"><argument>-x y</argument></job>`, `<job id="b" namespace="n" name="make"/>`,
		`<job id="c" name="make"><argument>z</argument></job>`}
	for _, parts := range [][]string{append([]string{catalogue}, jobs...), append(slices.Clone(jobs), catalogue)} {
		var got []string
		for _, task := range mustRead(t, document(parts...)).Tasks {
			got = append(got, strings.Join(task.Argv, " "))
		}
		if diff := cmp.Diff([]string{"/bin/made -x y", "/bin/made", "make z"}, got); diff != "" {
			t.Errorf("commands (-want +got):\n%s", diff)
		}
	}
	use, inout := `<uses file="x" link="input" size="7"/>`, `<uses file="y" link="inout" size="5"/>`
	task := mustRead(t, document(`<job id="a" runtime="1">`+use+inout+use+inout+`<uses file="y" link="output" size="5"/></job>`)).Tasks[0]
	if task.ReadBytes != 12 || task.WrittenBytes != 5 || len(task.Inputs) != 2 || len(task.Outputs) != 1 {
		t.Errorf("%d bytes of %v, %d of %v; want 12 of x and y, 5 of y", task.ReadBytes, task.Inputs, task.WrittenBytes, task.Outputs)
	}
}

// A profile with a runtime of 0 is also an estimate; a measured runtime takes precedence.
func TestRuntimesOfZero(t *testing.T) {
	t.Parallel()
	profile := func(seconds string) string {
		return `<profile namespace="pegasus" key="runtime">` + seconds + `</profile>`
	}
	for inside, want := range map[string]struct {
		estimate time.Duration
		known    bool
	}{
		"":                          {0, false},
		profile("0"):                {0, true},
		profile("0.0"):              {0, true},
		profile("5"):                {5 * time.Second, true},
		profile("0") + profile("5"): {5 * time.Second, true},
		profile("5") + profile("0"): {0, true},
		profile("0") + `<uses file="x" link="output" size="3"/>`: {0, true},
	} {
		task := &mustRead(t, document(job("a", inside))).Tasks[0]
		if got, known := task.Estimated(); got != want.estimate || known != want.known || task.Measured() {
			t.Errorf("%s: estimate %v, %v, measured %v, want %v, %v", inside, got, known, task.Measured(), want.estimate, want.known)
		}
		if task.Instant != (want.known && want.estimate == 0) {
			t.Errorf("%s: instant is %v", inside, task.Instant)
		}
	}
	measured := `<job id="a" name="make" runtime="2">` + profile("0") + `</job>`
	if task := mustRead(t, document(measured)).Tasks[0]; task.Estimate != 2*time.Second || task.Instant {
		t.Errorf("%s: estimate %v, instant %v", measured, task.Estimate, task.Instant)
	}
}

func TestANamelessWorkflowIsCalledAsItsFile(t *testing.T) {
	t.Parallel()
	wf, _, err := dax.Read(t.Context(), strings.NewReader("<adag>"+job("a", "")+"</adag>"), "dir/m.51.dax.gz", workflow.Options{})
	if err != nil || wf.Name != "m.51" {
		t.Errorf("Read = %v, %v, want m.51", wf, err)
	}
}

// An endless document is refused, whichever part is endless.
func TestReadBoundsAnElement(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, fill, says string }{
		"an attribute":      {document()[:30] + `<job id="`, "x", "an element is longer than 256 KiB"},
		"an argument":       {document()[:30] + "<job id='a'><argument>", " x", "an element is longer than 256 KiB"},
		"arguments":         {document()[:30] + "<job id='a'>", "<argument/>", "an element is longer than 256 KiB"},
		"uses":              {document()[:30] + "<job id='a'>", "<uses file='x'/>", "an element is longer than 256 KiB"},
		"parents":           {document()[:30] + "<child ref='a'>", "<parent ref='x'/>", "an element is longer than 256 KiB"},
		"blanks":            {document()[:30], "\n", "an element is longer than 256 KiB"},
		"a comment":         {"<!--", "x", "an element is longer than 256 KiB"},
		"a document type":   {"<!DOCTYPE ", "x", "an element is longer than 256 KiB"},
		"entities":          {"<!DOCTYPE adag [", "<!ENTITY a 'x'>", "an element is longer than 256 KiB"},
		"depth":             {document()[:30], "<x>", "elements are nested more than 100 deep"},
		"jobs":              {document()[:30], "<job id='a'/>", `task "a": another task has the same id (w.dax:2)`},
		"elements":          {document()[:30], "<x/>", "the workflow is longer than 1 MiB"},
		"behind the end":    {document(job("a", "")), "\n", "an element is longer than 256 KiB"},
		"comments in a row": {document()[:30], "<!---->", "the workflow is longer than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := &counted{Reader: io.MultiReader(strings.NewReader(c.before), repeated(c.fill))}
			_, _, err := dax.Read(t.Context(), text, "w.dax", workflow.Options{MaxValue: mib / 4, MaxBytes: mib})
			if corral.KindOf(err) != corral.Invalid || !strings.HasSuffix(err.Error(), ": "+c.says) {
				t.Errorf("Read = %v, want %s", err, c.says)
			}
			if text.given > 2*mib {
				t.Errorf("%d MiB were read", text.given/mib)
			}
		})
	}
}

// A job's arguments are dropped once they exceed the maximum of any program.
func TestLongArguments(t *testing.T) {
	t.Parallel()
	text := strings.NewReader(document(job("a", "<argument>"+strings.Repeat("a ", mib+1)+"</argument>")))
	_, _, err := dax.Read(t.Context(), text, "w.dax", workflow.Options{})
	if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), "w.dax:") ||
		!strings.HasSuffix(err.Error(), "it is longer than 2 MiB, the maximum for starting a program") {
		t.Errorf("Read = %v", err)
	}
}

// A counted is a reader that counts the bytes that it has returned.
type counted struct {
	io.Reader
	given int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.given += n
	return n, err
}

// repeated returns an endless text.
func repeated(part string) io.Reader { return &repeating{part: part} }

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

// If a caller cancels the reading, the error is not about the document.
func TestTheEndOfAContextEndsReading(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	_, _, err := dax.Read(ctx, strings.NewReader(document(job("a", ""))), "w.dax", workflow.Options{})
	if !errors.Is(err, errStop) || corral.KindOf(err) != corral.Internal {
		t.Errorf("Read = %v (%s), want the end of the context", err, corral.KindOf(err))
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(document(job("a", `<uses file="x" link="output" size="3"/>`), job("b", `<uses file="x" link="input" size="4"/>`), after("b", "a"))), false)
	f.Add([]byte(document(`<job id="a" name="n" runtime="1.5" cores="2"/>`)), true)
	f.Add([]byte(document(job("a", `<argument>-i <file name="x"/> 'y z'</argument><profile namespace="env" key="K">v</profile><stdout name="o"/>`))), false)
	f.Add([]byte(document(`<executable name="make"><pfn url="file:///bin/true"/></executable>`, job("a", ""))), false)
	f.Add([]byte(document(job("a", ""), after("a", "a"))), false)
	f.Add([]byte(document(`<job id="a" runtime="0"/>`)), true)
	f.Add([]byte(document(job("a", `<profile namespace="pegasus" key="runtime">0</profile>`))), false)
	f.Add([]byte(`<!DOCTYPE adag [<!ENTITY a "b">]><adag/>`), false)
	f.Fuzz(func(t *testing.T, b []byte, strict bool) {
		wf, _, err := dax.Read(t.Context(), bytes.NewReader(b), "w.dax", workflow.Options{Strict: strict, MaxBytes: 1 << 20})
		var e *corral.Error
		switch {
		case err != nil && (!errors.As(err, &e) || e.Kind != corral.Invalid || !strings.HasPrefix(e.Place, "w.dax")):
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
