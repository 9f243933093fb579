package main

// Data that grows as long as corrald runs is pruned: histories by age, the log by size. Other old data is limited
// elsewhere: answers to requests by the store, directories at sites by the engine, runs by `corral runs clean`. The
// rows of jobs are kept, because bills and waiting times are computed from them.

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/store"
)

const (
	retainEvery   = 10 * time.Minute
	entriesAWrite = 1000 // entries deleted by one transaction, for which others have to wait
)

// retain prunes histories and the log, now and periodically, until ctx ends.
func retain(ctx context.Context, lg *slog.Logger, db *store.DB, s settings) error {
	tick := time.NewTicker(retainEvery)
	defer tick.Stop()
	for {
		if err := forgetHistory(ctx, db, time.Now(), s.upkeep.history); err != nil && ctx.Err() == nil {
			lg.Warn("old history could not be removed; retrying", "err", err)
		}
		if err := cutLog(s.layout.Log(), s.upkeep.log); err != nil {
			lg.Warn("the log could not be rotated; retrying", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// forgetHistory removes the entries of histories that are older than keep; 0 keeps all.
func forgetHistory(ctx context.Context, db *store.DB, now time.Time, keep time.Duration) error {
	for more := keep > 0; more; {
		err := db.Whole().Write(ctx, store.Actor, func(tx *store.WholeTx) (err error) {
			more, err = tx.ForgetHistory(now.Add(-keep), entriesAWrite)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// cutLog renames a log that is longer than limit bytes to NAME.1, replacing an older file of that name, and makes this
// process continue in a new file. It changes the log only if the log is this process's standard error, because standard
// error may have been redirected to another file. A limit of 0 disables the rotation.
func cutLog(name string, limit int64) error {
	now, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (limit == 0 || now.Size() <= limit):
		return nil
	case err != nil:
		return err
	}
	ours, err := os.Stderr.Stat()
	if err != nil || !os.SameFile(now, ours) {
		return err
	}
	stdout, err := os.Stdout.Stat()
	if err != nil {
		return err
	}
	if err := os.Rename(name, name+".1"); err != nil {
		return err
	}
	fresh, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer fresh.Close()
	err = unix.Dup3(int(fresh.Fd()), int(os.Stderr.Fd()), 0)
	if os.SameFile(stdout, ours) {
		err = errors.Join(err, unix.Dup3(int(fresh.Fd()), int(os.Stdout.Fd()), 0))
	}
	return err
}
