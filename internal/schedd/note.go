package schedd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral/condor"
)

// A note is what has to be known of a run's jobs when corrald starts again.
type note struct {
	ID  string `json:"id"`  // names the run in the schedd, where runs of others may have its number
	Dir string `json:"dir"` // D
}

func (f *feed) notePath() string { return filepath.Join(f.dir, "run.json") }

// open brings back what is known of the run's jobs from before.
func (f *feed) open() {
	f.attached = time.Now()
	f.lookupAt = f.attached.Add(lookupEvery)
	text, err := os.ReadFile(f.notePath())
	if err == nil {
		err = json.Unmarshal(text, &f.note)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.lg.Error("what was noted of the run's jobs cannot be read", "error", err)
	}
	f.unsure = f.note.ID != ""
}

// keep notes the run's directory before the first of its jobs is submitted. Without the note none is.
func (f *feed) keep(dir string) {
	if f.note.ID != "" && f.note.Dir == dir && f.trouble == nil {
		return
	}
	if f.note.ID == "" {
		f.note.ID = rand.Text()
	}
	f.note.Dir = dir
	text, err := json.Marshal(f.note)
	if err == nil {
		err = os.MkdirAll(f.dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(f.notePath()+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(f.notePath()+".new", f.notePath())
	}
	f.trouble = err
}

// mine selects the run's jobs.
func (f *feed) mine() []string {
	return []string{"-constraint", "CorralRunID =?= " + condor.FormatNew(f.note.ID)}
}

// cleanUp removes the run's jobs and files, as soon as HTCondor answers.
func (f *feed) cleanUp() {
	if !f.awaitPredecessor(f.ctx) {
		return
	}
	for f.note.ID != "" && f.ctx.Err() == nil {
		err := f.removeAll(f.ctx)
		if err == nil {
			break
		}
		f.answered(err)
		select {
		case <-f.ctx.Done():
		case <-time.After(time.Until(f.retryAt)):
		}
	}
	if f.ctx.Err() != nil {
		return
	}
	var err error
	if f.note.Dir != "" {
		err = os.RemoveAll(filepath.Join(f.note.Dir, jobsDir))
	}
	if err = errors.Join(err, os.RemoveAll(f.dir)); err != nil {
		f.lg.Warn("files of the run's jobs are left", "error", err)
	}
}

// removeAll takes all jobs of the run out of the queue. That there is none is fine.
func (f *feed) removeAll(ctx context.Context) error {
	if f.note.ID == "" {
		return nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := f.q.cfg.Tools.Run(ctx, nil, "condor_rm", f.mine()...)
	if err := unanswered(err); err != nil {
		return err
	}
	left, err := f.q.cfg.Tools.Query(ctx, "condor_q", f.mine(), []string{"JobStatus"})
	for _, ad := range left {
		if status, _ := ad.Int("JobStatus"); err == nil && status != statusRemoved {
			err = errors.New("the run's jobs are still in the queue")
		}
	}
	return err
}

// unanswered is err if it says that there was no answer.
func unanswered(err error) error {
	var no *condor.Refused
	if errors.As(err, &no) {
		return nil
	}
	return err
}
