package formats_test

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats"
)

// A Makeflow is read, and written as a .dag with one submit description for each transformation.
func Example() {
	const text = `CATEGORY=align
a.out: reads.a
	./align reads.a a.out
CATEGORY=merge
all.out: a.out
	./merge all.out a.out
`
	wf, warnings, err := formats.Read(context.Background(), strings.NewReader(text), "genome.mf", workflow.Options{})
	if err != nil || len(warnings) > 0 {
		fmt.Println(warnings, err)
		return
	}
	for i, t := range wf.Tasks {
		fmt.Println(t.Name, t.ID, "reads", t.Inputs, "after", wf.Graph.Parents(i))
	}
	err = formats.Write(wf, "dagman", func(name string) (io.WriteCloser, error) {
		fmt.Println("writing", name)
		return file{io.Discard}, nil
	})
	fmt.Println(err)
	// Output:
	// align a.out reads [reads.a] after []
	// merge all.out reads [a.out] after [0]
	// writing genome.dag
	// writing align.sub
	// writing merge.sub
	// <nil>
}

type file struct{ io.Writer }

func (file) Close() error { return nil }
