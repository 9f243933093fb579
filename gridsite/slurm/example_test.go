package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
)

// Before the first job of a kind, Check asks Slurm whether it would accept it. At a real site, conn is an ssh.Conn;
// here the head node is this machine with an sbatch that refuses every job.
func ExampleBatch_Check() {
	bin, err := os.MkdirTemp("", "slurm")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(bin)
	const sbatch = "#!/bin/sh\necho \"sbatch: error: invalid partition specified: long\" >&2\nexit 1\n"
	for _, name := range []string{"sbatch", "scontrol"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(sbatch), 0o755); err != nil {
			fmt.Println(err)
			return
		}
	}
	conn := gridsitetest.InPath{Conn: local.Conn{}, Bin: bin}

	job := gridsite.JobSpec{Tag: "pilot-1", Argv: []string{"/bin/hostname"}, Walltime: time.Hour}
	job.Hosts, job.CPUs, job.Queue = 2, 16, "long"
	err = slurm.New(conn, "/home/ann/corral").Check(context.Background(), job)
	var refused *gridsite.Refused
	if errors.As(err, &refused) { // any other error: ask again, because Slurm did not answer
		fmt.Println(refused.Text)
	}
	// Output:
	// invalid partition specified: long
}
