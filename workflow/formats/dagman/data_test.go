package dagman_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman"
)

// own is a folder of files as users could have written them, with the submit descriptions that some of these files
// name: together the files contain all statements, in several spellings. Some of the files are refused.
const own = "testdata/own"

// readIn reads a file below a folder; errors use its name relative to the folder.
func readIn(folder, name string) (*workflow.Workflow, []workflow.Warning, error) {
	open := func(file string) (io.ReadCloser, error) {
		return input.Open(filepath.Join(folder, filepath.Dir(name), file))
	}
	f, err := open(filepath.Base(name))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return dagman.Read(context.Background(), f, name, workflow.Options{Open: open})
}

// TestOwn reads each of our files and checks the tasks with their parents and the warnings, or the error.
func TestOwn(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	eachDAG(t, own, func(name string) {
		wf, warnings, err := readIn(own, name)
		if err != nil {
			fmt.Fprintf(&got, "%s: refused\n\t%v\n", name, err)
			return
		}
		fmt.Fprintf(&got, "%s: %d tasks, %d edges\n", name, len(wf.Tasks), wf.Graph.Edges())
		for _, line := range strings.Split(strings.TrimSpace(shown(wf)), "\n") {
			fmt.Fprintln(&got, "\t"+strings.TrimSpace(line))
		}
		for _, w := range warnings {
			fmt.Fprintf(&got, "\twarning: %s\n", w)
		}
	})
	golden(t, "testdata/own.txt", got.String())
}

// TestWriteRoundTripsOwn writes each of our files that is not refused, and reads it again.
func TestWriteRoundTripsOwn(t *testing.T) {
	t.Parallel()
	n := 0
	eachDAG(t, own, func(name string) {
		if wf, _, err := readIn(own, name); err == nil {
			roundTrip(t, name, wf)
			n++
		}
	})
	if n < 10 {
		t.Errorf("%d files were read, want 10 or more", n)
	}
}

// eachDAG calls do with the name of each .dag below a folder.
func eachDAG(t *testing.T, folder string, do func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".dag" {
			do(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// roundTrip checks that writing and reading a workflow does not change it.
func roundTrip(t *testing.T, name string, wf *workflow.Workflow) {
	t.Helper()
	files := folder{}
	if err := dagman.Write(wf, files.create); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	again, _, err := read(files[files.dag()], files)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if diff := cmp.Diff(normal(wf), normal(again), workflows()...); diff != "" {
		t.Errorf("%s: written and read (-want +got):\n%s", name, diff)
	}
}

// golden compares a text with a file, or writes the file if the environment requests it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is different; got\n%s", file, got)
	}
}
