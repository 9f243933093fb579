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

	"github.com/corral-pilot/corral/internal/input"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dagman"
)

// published are HTCondor's own tests of DAGMan. Their submit descriptions are not there.
const published = "../../../shared/data/dagman"

// readPublished reads one of them; errors call it by its name only.
func readPublished(name string) (*workflow.Workflow, []workflow.Warning, error) {
	return readIn(published, name)
}

// readIn reads a file below a folder; errors call it by its name from there.
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

// TestPublished reads each of them: what the workflow has, or why it is refused.
func TestPublished(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	err := fs.WalkDir(os.DirFS(published), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".dag" {
			return err
		}
		wf, _, err := readPublished(name)
		if err != nil {
			fmt.Fprintf(&got, "%s: refused\n\t%v\n", name, err)
			return nil
		}
		fmt.Fprintf(&got, "%s: %d tasks, %d edges\n", name, len(wf.Tasks), wf.Graph.Edges())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/published.txt", got.String())
}

// golden compares with a file, which it writes anew if the environment says so.
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
