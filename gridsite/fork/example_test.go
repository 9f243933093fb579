package fork_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/fork"
	"github.com/corral-pilot/corral/gridsite/local"
)

// A job runs on this machine. The program polls until it has ended, reads its output, and removes its directory.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "fork")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	batch := fork.New(local.Conn{}, dir+"/site")
	job := gridsite.JobSpec{Tag: "hello-1", Argv: []string{"/bin/sh", "-c", "echo hello; exit 3"}, Walltime: time.Minute}
	if _, err := batch.Submit(ctx, job); err != nil {
		fmt.Println(err)
		return
	}
	for range time.Tick(20 * time.Millisecond) {
		jobs, err := batch.Poll(ctx, []string{job.Tag})
		if err != nil {
			fmt.Println(err)
			return
		}
		if status := jobs[job.Tag]; status.Phase == gridsite.Ended {
			fmt.Println("exit status", *status.Exit)
			break
		}
	}
	output, err := batch.Read(ctx, job.Tag, "stdout")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s", output)
	if err := batch.Forget(ctx, job.Tag); err != nil {
		fmt.Println(err)
	}
	// Output:
	// exit status 3
	// hello
}
