package schedd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	f.trouble = f.recall()
	f.unsure = f.note.ID != ""
}

// recall reads the note, if there is one. One that cannot be read may name jobs in the schedd, which would run twice
// under another name.
func (f *feed) recall() error {
	text, err := os.ReadFile(f.notePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var n note
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err == nil && n.ID == "" {
		err = errors.New("no name in it")
	}
	if err != nil {
		return fmt.Errorf("reading %s, which names the run's jobs in HTCondor: %w", f.notePath(), err)
	}
	f.note, f.unsure = n, true
	return nil
}

// keep notes the run's directory before the first of its jobs is submitted. Without the note none is.
func (f *feed) keep(dir string) {
	if f.note.ID != "" && f.note.Dir == dir && f.trouble == nil {
		return
	}
	if f.note.ID == "" {
		if f.trouble = f.recall(); f.trouble != nil {
			return
		}
	}
	if f.note.ID == "" {
		f.note.ID = rand.Text()
	}
	f.note.Dir = dir
	f.trouble = f.note.write(f.notePath())
}

// write puts the note where a power failure does not reach it.
func (n note) write(name string) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), name); err != nil {
		return err
	}
	return errors.Join(syncFolder(dir), syncFolder(filepath.Dir(dir)))
}

func syncFolder(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// noted reports whether there is a note by which jobs that are submitted now are found again. It tries to
// make one; jobs that wait for long have failed.
func (f *feed) noted(now time.Time) bool {
	if f.trouble == nil || len(f.unsent) == 0 {
		return true
	}
	f.keep(f.unsent[0].Job.Dir)
	if f.trouble == nil {
		return true
	}
	waiting := f.unsent
	f.unsent = nil
	for _, j := range waiting {
		f.postpone(j, now, f.trouble)
	}
	f.wait("jobs cannot be submitted now", f.trouble)
	return false
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
