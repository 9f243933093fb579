package formats_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats"
)

const mib = 1 << 20

// small is a WfFormat file with its only task on line 2.
const small = `{"name": "w", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [
{"name": "a", "id": "a", "parents": [], "children": []}]}}}
`

// A file is read regardless of its name, compressed or not. If no format is detected, the first format reports the
// error.
func TestReadKnowsTheFormat(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	_, err := io.WriteString(gz, small)
	if err := errors.Join(err, gz.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"w.json", "W.JSON", "w.json.gz", "w.gz", "w", "w.txt", ""} {
		for _, text := range []string{small, "\n " + small, packed.String(), "\uFEFF" + small} {
			wf, warnings, err := formats.Read(t.Context(), strings.NewReader(text), name, workflow.Options{Strict: true})
			if err != nil || len(warnings) > 0 || len(wf.Tasks) != 1 {
				t.Errorf("Read of %q = %v, warnings %v", name, err, warnings)
			}
		}
	}
	for text, want := range map[string]string{
		"": "w.txt: the file is empty",
		"x": "w.txt: neither its name nor its contents show its format; Corral reads WfFormat 1.4 and 1.5 (.json); " +
			"DAX 2 and 3 (.dax, .xml); classic Makeflow (.makeflow, .mf, makeflow); DAGMan with submit descriptions (.dag)",
		"\x1f\x8b junk of ten":           "w.txt: decompressing: gzip: invalid header",
		"\x1f\x8b":                       "w.txt: decompressing: unexpected EOF",
		packed.String()[:packed.Len()-9]: "w.txt:2:60: the file ends before the end of the document",
	} {
		_, _, err := formats.Read(t.Context(), strings.NewReader(text), "w.txt", workflow.Options{})
		if corral.KindOf(err) != corral.Invalid || err.Error() != want {
			t.Errorf("Read of %q = %v, want %s", text, err, want)
		}
	}
}

// TestReadKnowsEveryFormat: every format is detected by the name of the file, and by the beginning of its text.
func TestReadKnowsEveryFormat(t *testing.T) {
	t.Parallel()
	const xml, rule = "<?xml version='1.0'?>\n<adag name='w'><job id='a' name='n'/></adag>\n", "A=1\n\na: b\n\ttrue\n"
	for _, c := range []struct{ name, text, id, word string }{
		{"w.dax", xml, "a", "dax"}, {"w.XML.gz", xml, "a", "dax"}, {"w", xml, "a", ""}, {"w.makeflow", rule, "a", "makeflow"},
		{"d/Makeflow", rule, "a", "makeflow"}, {"w.mf", rule, "a", "makeflow"}, {"w.txt", rule, "a", ""}, {"w.json", small, "a", "wfformat"},
	} {
		wf, _, err := formats.Read(t.Context(), strings.NewReader(c.text), c.name, workflow.Options{})
		if err != nil || len(wf.Tasks) != 1 || wf.Tasks[0].ID != c.id {
			t.Errorf("Read of %s = %v, %v", c.name, wf, err)
		}
		if word, ok := formats.Of(c.name); word != c.word || ok != (c.word != "") {
			t.Errorf("Of(%s) = %q, %v, want %q", c.name, word, ok, c.word)
		}
	}
	_, _, err := formats.Read(t.Context(), strings.NewReader(small), "w.dax", workflow.Options{})
	if want := `w.dax:1: not XML: it begins with "{\"name\": \"w\", \"schemaVersion\": \"1.5\", \"w"`; err == nil || err.Error() != want {
		t.Errorf("Read of JSON as DAX = %v, want %s", err, want)
	}
}

type closing struct{ io.Writer }

func (closing) Close() error { return nil }

func TestWrite(t *testing.T) {
	t.Parallel()
	wf, _, err := formats.Read(t.Context(), strings.NewReader(small), "w.json", workflow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	var name string
	create := func(n string) (io.WriteCloser, error) { name = n; return closing{&out}, nil }
	if err := formats.Write(wf, "wfformat", create); err != nil || !strings.Contains(out.String(), `"schemaVersion": "1.5"`) {
		t.Errorf("Write = %v, %s", err, out.String())
	}
	if word, ok := formats.Of(name); word != "wfformat" || !ok {
		t.Errorf("its file is %s", name)
	}
	refuse := func(string) (io.WriteCloser, error) { return nil, io.ErrClosedPipe }
	if err := formats.Write(wf, "wfformat", refuse); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Write = %v, want the error of the file", err)
	}
	for word, want := range map[string]string{
		"dax": "DAX 2 and 3 can be read but not written; use wfformat or dagman", "pdf": `unknown format "pdf"; use wfformat or dagman`,
	} {
		if err := formats.Write(wf, word, create); corral.KindOf(err) != corral.Invalid || err.Error() != want {
			t.Errorf("Write = %v, want %s", err, want)
		}
	}
	if got := strings.Join(formats.Written(), " "); got != "wfformat dagman" {
		t.Errorf("Written = %s", got)
	}
}

// Reading stops at the limit if a text decompresses to too much data, and also if a text never ends but decompresses to
// nothing.
func TestReadBoundsWhatIsCompressed(t *testing.T) {
	t.Parallel()
	var bomb, empty bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, err := io.WriteString(z, `{"name": "w", "workflow": {"specification": {"tasks": [`+strings.Repeat(" ", 100*mib))
	if err := errors.Join(err, z.Close(), gzip.NewWriter(&empty).Close()); err != nil {
		t.Fatal(err)
	}
	_, _, err = formats.Read(t.Context(), &bomb, "w.json.gz", workflow.Options{})
	if want := "w.json.gz:1:56: more than 1 MiB of whitespace"; err == nil || err.Error() != want {
		t.Errorf("Read of blanks = %v, want %s", err, want)
	}
	members := bytes.NewReader(bytes.Repeat(empty.Bytes(), 4*mib/empty.Len()))
	_, _, err = formats.Read(t.Context(), members, "w.json.gz", workflow.Options{MaxBytes: mib})
	if want := "w.json.gz: the workflow is longer than 1 MiB"; err == nil || err.Error() != want {
		t.Errorf("Read of nothing, compressed often = %v, want %s", err, want)
	}
}

func TestReadFileOpensRegularFilesOnly(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{pipe: "a named pipe", "/dev/zero": "a device", t.TempDir(): "a directory"}
	for name, what := range names {
		_, _, err := formats.ReadFile(t.Context(), name, workflow.Options{})
		want := name + ": it is " + what + ", not a regular file"
		if corral.KindOf(err) != corral.Invalid || err.Error() != want {
			t.Errorf("ReadFile = %v, want %s", err, want)
		}
	}
}

func TestReadLimitsTheSize(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	fmt.Fprintf(gz, `{"name": "%s"}`, strings.Repeat("x", 4<<20))
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err := formats.Read(t.Context(), &packed, "w.json.gz", workflow.Options{MaxBytes: 1 << 20})
	if want := "w.json.gz: the workflow is longer than 1 MiB"; err == nil || err.Error() != want {
		t.Errorf("Read = %v, want %q", err, want)
	}
}

// A file refers to other files by paths relative to its folder.
func TestReadFileOpensWhatItNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"w.dag": "JOB A sub/a.sub\nSPLICE S s\n", "s": "JOB B sub/a.sub\n", "sub/a.sub": "executable = /bin/true\nqueue\n",
		"bad.dag": "JOB A sub\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	wf, warnings, err := formats.ReadFile(t.Context(), filepath.Join(dir, "w.dag"), workflow.Options{Strict: true})
	if err != nil || len(warnings) > 0 || len(wf.Tasks) != 2 || wf.Tasks[1].Argv[0] != "/bin/true" {
		t.Errorf("ReadFile = %v, warnings %v", err, warnings)
	}
	bad := filepath.Join(dir, "bad.dag")
	_, _, err = formats.ReadFile(t.Context(), bad, workflow.Options{})
	want := fmt.Sprintf("%s:1: submit description %s/sub: it is a directory, not a regular file", bad, dir)
	if corral.KindOf(err) != corral.Invalid || err.Error() != want {
		t.Errorf("ReadFile = %v, want %s", err, want)
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "w.json")
	if err := os.WriteFile(path, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	wf, _, err := formats.ReadFile(t.Context(), path, workflow.Options{})
	if err != nil || wf.Dir != dir {
		t.Errorf("ReadFile = %v, Dir %q, want %q", err, wf.Dir, dir)
	}
	if got, want := wf.Place(0).String(), path+":2"; got != want {
		t.Errorf("Place(0) = %q, want %q", got, want)
	}
	gone := filepath.Join(dir, "gone.json")
	_, _, err = formats.ReadFile(t.Context(), gone, workflow.Options{})
	if want := gone + ": no such file or directory"; corral.KindOf(err) != corral.Invalid || err.Error() != want {
		t.Errorf("ReadFile of a missing file = %v, want %q", err, want)
	}
}

// TestExamples: every example except the demo's is read without a warning, and can be run.
func TestExamples(t *testing.T) {
	t.Parallel()
	for file, tasks := range map[string]int{"makeflow/Makeflow": 3, "dax/diamond.dax": 4} {
		path := filepath.Join("../../examples", file)
		wf, _, err := formats.ReadFile(t.Context(), path, workflow.Options{Strict: true})
		if err != nil || len(wf.Tasks) != tasks {
			t.Errorf("%s: %v, want %d tasks", file, err, tasks)
			continue
		}
		if err := wf.Runnable(); err != nil {
			t.Error(err)
		}
		for _, f := range wf.OwnInputs() {
			if _, err := os.Stat(filepath.Join(wf.Dir, f)); err != nil {
				t.Error(err)
			}
		}
	}
}
