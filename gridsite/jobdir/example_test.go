package jobdir_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/gridsite/local"
)

// A dialect embeds Dirs, adds Submit, Poll, Cancel and Forget, and is a gridsite.Batch. Dirs reads and lists the jobs.
func ExampleDirs() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "jobdir")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	dir := jobdir.Path(root, "pilot-1") // a script of the dialect makes it, from the files of Dirs.Files
	if err := os.MkdirAll(filepath.Join(dir, jobdir.Control), 0o700); err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "stdout"), []byte("done"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	dirs := jobdir.At(local.Conn{}, root, nil)
	tags, err := dirs.Tags(ctx)
	fmt.Println(tags, err)
	stdout, err := dirs.Read(ctx, "pilot-1", "stdout")
	fmt.Printf("%s %v\n", stdout, err)

	var job gridsite.JobStatus
	err = jobdir.ParseEnd(&job, []string{"1795233645", "143", "walltime:TIMEOUT"}) // as in the job's status
	fmt.Println(*job.Exit, job.Killed, job.Says, err)
	// Output:
	// [pilot-1] <nil>
	// done <nil>
	// 143 walltime TIMEOUT <nil>
}
