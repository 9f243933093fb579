package dax

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/workflow"
)

// A reader reads one document and passes its contents to its builder.
type reader struct {
	doc     *document
	wf      *workflow.Workflow
	builder *workflow.Builder

	programs map[executable]string // :: name in the document → path
	// :: executable that was not declared before the jobs that run it → the indices of the tasks of these jobs.
	without map[executable][]int32
	sizes   workflow.Sizes

	ignored   map[string]int // :: description of an ignored item → number of occurrences
	ignoredAt []workflow.Warning
}

// An executable identifies the executable of a job by the names that Pegasus uses.
type executable struct{ namespace, name, version string }

// read reads the whole document. Some data are passed to the builder only at the end, when all uses of each file and
// all ignored items are known.
func (r *reader) read() error {
	root, err := r.doc.root()
	if err != nil {
		return err
	}
	if root.Name.Local != "adag" {
		return r.doc.here().Errorf("the document is <%s>, not <adag>: it is not a DAX", root.Name.Local)
	}
	at := r.doc.here()
	r.wf.Name = cmp.Or(attribute(root, "name"), r.wf.Name)
	if version := attribute(root, "version"); !readable(version) {
		return at.Errorf("version is %q; only DAX 2 and 3 are supported", version)
	}
	if err := r.doc.children(r.part); err != nil {
		return err
	}
	if err := r.doc.end(); err != nil {
		return err
	}
	jobs := attribute(root, "jobCount")
	if n, err := strconv.Atoi(jobs); jobs != "" && (err != nil || n != len(r.wf.Tasks)) {
		r.builder.Warn(at, "jobCount is %q, but there are %d jobs", jobs, len(r.wf.Tasks))
	}
	return r.finish()
}

// readable reports whether a version is 2 or 3, with or without a minor version, or is missing, as in the files of the
// gallery.
func readable(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	return version == "" || major == "2" || major == "3"
}

// part reads one child element of the adag.
func (r *reader) part(e xml.StartElement) error {
	switch e.Name.Local {
	case "job":
		return r.job(e)
	case "child":
		return r.child(e)
	case "executable":
		return r.executable(e)
	case "dag", "dax":
		return r.doc.here().Errorf("job %q is a workflow of its own (<%s>); convert each workflow by itself",
			attribute(e, "id"), e.Name.Local)
	case "filename", "metadata": // a list of all files, which the jobs repeat; information for users
		return r.doc.skip()
	}
	r.ignore("element <" + e.Name.Local + ">")
	return r.doc.skip()
}

// child reads the parents of a job.
func (r *reader) child(e xml.StartElement) error {
	child := attribute(e, "ref")
	if child == "" {
		return r.doc.here().Errorf("<child> has no ref")
	}
	return r.doc.children(func(e xml.StartElement) error {
		parent := attribute(e, "ref")
		if e.Name.Local != "parent" || parent == "" {
			return r.doc.here().Errorf("<%s> in the list of parents of %q, want <parent> with a ref",
				e.Name.Local, child)
		}
		r.builder.Edge(parent, child, r.doc.here())
		return r.doc.skip()
	})
}

// executable records the first path of an executable. The element may precede or follow the jobs that run the
// executable.
func (r *reader) executable(e xml.StartElement) error {
	key := executableOf(e)
	return r.doc.children(func(e xml.StartElement) error {
		if path, ok := pathOf(attribute(e, "url")); e.Name.Local == "pfn" && ok && r.programs[key] == "" {
			r.programs[key] = path
		}
		return r.doc.skip()
	})
}

func executableOf(e xml.StartElement) executable {
	return executable{attribute(e, "namespace"), attribute(e, "name"), attribute(e, "version")}
}

// pathOf returns the path on a worker to which a URL refers; ok is false if the URL refers to another host.
func pathOf(text string) (path string, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" && u.Scheme != "file" || u.Host != "" && u.Host != "localhost" {
		return "", false
	}
	return u.Path, filepath.IsAbs(u.Path)
}

// ignore records an ignored item, with the line of its first occurrence.
func (r *reader) ignore(what string) {
	if r.ignored[what] == 0 {
		if len(r.ignoredAt) == maxIgnored {
			return
		}
		r.ignoredAt = append(r.ignoredAt, workflow.Warning{Place: r.doc.here(), Message: what})
	}
	r.ignored[what]++
}

// maxIgnored is the maximum number of distinct ignored items that are recorded.
const maxIgnored = 100

// finish processes the data that are complete only at the end of the document: warnings, commands and the sizes of
// files.
func (r *reader) finish() error {
	for _, w := range r.ignoredAt {
		times := ""
		if n := r.ignored[w.Message]; n > 1 {
			times = fmt.Sprintf(" (%d times)", n)
		}
		r.builder.Warn(w.Place, "%s is ignored%s", w.Message, times)
	}
	for key, tasks := range r.without {
		if program := r.programs[key]; program != "" {
			for _, i := range tasks {
				t := &r.wf.Tasks[i]
				t.Argv = append([]string{r.builder.Intern(program)}, t.Argv[min(1, len(t.Argv)):]...)
			}
		}
	}
	return r.sizes.Give(r.builder, r.doc.here())
}

// given reports whether an element has an attribute, possibly an empty one.
func given(e xml.StartElement, name string) bool {
	return slices.ContainsFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == name && a.Name.Space == "" })
}

// attribute returns the value of an attribute, or "".
func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value
		}
	}
	return ""
}
