package cli

// Written files never replace existing ones, and files of a failed conversion are removed.

import (
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/clustering"
	"github.com/corral-pilot/corral/workflow/formats"
)

// convert writes a workflow in another format to OUT, with the further files that the format needs beside it.
func (v workflowVerbs) convert(c *cli.Context) error {
	out := &outputs{name: c.Args().Get(1), stdout: v.out}
	if c.NArg() > 1 && out.name == "" {
		return corral.ErrorAt(corral.Invalid, "OUT", "its name is empty; leave it out for stdout")
	}
	if v.format == formYAML {
		return corral.ErrorAt(corral.Invalid, "--output",
			"workflows cannot be written as YAML: choose a format with --to")
	}
	var err error
	if out.word, err = formatFor(c.String("to"), out.name); err != nil {
		return err
	}
	if out.name == "" && !formats.IsOneFile(out.word) { // checked before anything is printed
		return corral.ErrorAt(corral.Invalid, "OUT", "the format consists of several files: name the first, with OUT")
	}
	w, err := v.readWorkflow(c.Context, c.Args().First(), c.Bool("strict"))
	if err != nil {
		return err
	}
	var scripts []clustering.Script
	if w, scripts, err = arrange(c, out.word, w); err != nil {
		return err
	}
	for _, lost := range formats.Lost(w, out.word) {
		if c.Bool("strict") {
			return corral.ErrorAt(corral.Invalid, c.Args().First(), "the other format cannot represent %s", lost)
		}
		v.say("corral: warning: %s: %s: the other format cannot represent that", c.Args().First(), lost)
	}
	err = formats.Write(w, out.word, out.create)
	for k := 0; err == nil && k < len(scripts); k++ {
		err = out.write(scripts[k].Name, scripts[k].Text)
	}
	if err != nil {
		out.undo()
	}
	return err
}

// arrange applies --clustering and --priorities to a workflow. Both flags are for DAGMan, which neither clusters tasks
// nor sets priorities itself.
func arrange(c *cli.Context, word string, w *workflow.Workflow) (*workflow.Workflow, []clustering.Script, error) {
	for _, flag := range []string{"clustering", "priorities"} {
		if c.IsSet(flag) && word != "dagman" {
			return nil, nil, corral.ErrorAt(corral.Invalid, "--"+flag, "requires a DAG: give --to dag")
		}
	}
	rule, err := clustering.Parse(c.String("clustering"))
	if err != nil {
		return nil, nil, corral.ErrorAt(corral.Invalid, "--clustering", "%w", err)
	}
	var scripts []clustering.Script
	switch rule.Kind {
	case clustering.None:
	case clustering.Auto:
		return nil, nil, corral.ErrorAt(corral.Invalid, "--clustering",
			"auto requires a cluster, and a file has none: give a rule such as runtime=5m")
	default:
		if w, scripts, err = clustering.Join(w, rule); err != nil {
			return nil, nil, err
		}
	}
	if c.Bool("priorities") {
		w = clustering.Prioritise(w)
	}
	return w, scripts, nil
}

// formatFor returns the format to write: the requested format, the format implied by the file's extension or, failing
// both, WfFormat.
func formatFor(asked, out string) (word string, err error) {
	named, known := formats.Of(out)
	if asked == "" && out != "" && !known {
		return "", corral.ErrorAt(corral.Invalid, out, "its extension does not determine a format: give --to (%s)",
			strings.Join(formats.Written(), ", "))
	}
	if asked == "dag" { // dag is the file's extension
		asked = "dagman"
	}
	word = cmp.Or(asked, named, formats.Written()[0])
	return word, formats.CanWrite(word)
}

// outputs represents the files to which a workflow is written.
type outputs struct {
	word   string // the format
	name   string // name of the first file; empty: stdout, for a format of one file
	stdout io.Writer
	made   []string
}

// create creates a new file. The first file has the requested name, the other files have their own names in the same
// folder. The first file is compressed if its name ends in .gz.
func (o *outputs) create(name string) (io.WriteCloser, error) {
	if o.name == "" { // the format consists of one file
		return keptOpen{o.stdout}, nil
	}
	first := len(o.made) == 0
	path := o.name
	if !first {
		path = filepath.Join(filepath.Dir(o.name), filepath.Base(name))
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, "OUT", "%w", err)
	}
	o.made = append(o.made, path)
	if first && strings.HasSuffix(strings.ToLower(path), ".gz") {
		return &packedFile{gzip.NewWriter(f), f}, nil
	}
	return f, nil
}

// write creates a new file with a text.
func (o *outputs) write(name, text string) error {
	f, err := o.create(name)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}

// undo removes the created files.
func (o *outputs) undo() {
	for _, path := range o.made {
		_ = os.Remove(path)
	}
}

// A keptOpen is a stream that remains open when its writer closes it.
type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }

// A packedFile is a file that is compressed while it is written.
type packedFile struct {
	*gzip.Writer
	file *os.File
}

func (f *packedFile) Close() error { return errors.Join(f.Writer.Close(), f.file.Close()) }
