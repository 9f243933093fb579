package condorworker

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/internal/embedded/transfer"
)

// TaskCommand is the argument with which an HTCondor job starts this program.
const TaskCommand = "task"

// Task is the program of an HTCondor job: it runs the job's tasks in the folder that HTCondor created for the job, like
// an embedded worker. HTCondor transfers the output in that folder back.
func Task(ctx context.Context) error {
	dir, err := sandbox()
	if err != nil {
		return err
	}
	// HTCondor holds a job if a file that it should transfer back is missing, so an empty file is created first.
	if err := os.Mkdir(filepath.Join(dir, transfer.OutDir), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, transfer.ResultFile), nil, 0o600); err != nil {
		return err
	}
	ctx, cancel, slot, err := Enter(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	return transfer.Execute(ctx, dir, slot.Worker, slot.Resources)
}
