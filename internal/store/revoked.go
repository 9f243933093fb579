package store

// Revocations are also recorded in a file beside the database, which only grows. Restoring a backup also restores the
// rows of tokens as they were at that time. The file is never restored, so a token that was revoked since then stays
// revoked, and an owner who was suspended or ended since then remains suspended or ended.
//
// The file is text, so that a person can read it and merge it with a list from another machine:
//
//	sha256:HEX TIME ID      the token with this digest and this id was revoked
//	owner:NAME TIME STATE   an owner's account was moved to this state; the last line about an owner counts
//
// A line is on the disk before the corresponding transaction is committed. A crash between the two leaves an extra
// line in the file, and the next Open updates the rows to match the file. In the opposite order, a crash followed by
// a restore could bring a token back.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// RevokedOf returns the file that lists the revocations for the database at path. It is created by the first
// revocation and exists as long as the database.
func RevokedOf(path string) string { return path + ".revoked" }

// maxRevoked is the maximum size of a list in bytes: half a million tokens.
const maxRevoked = 64 << 20

// ownerWord begins lines about owners; lines about tokens begin with a digest.
const ownerWord = "owner:"

// revocations holds the list of one database. The one writer appends lines; readers may query it at any time.
type revocations struct {
	path string

	mu      sync.Mutex // guards the fields below
	file    *os.File   // nil: it does not exist yet
	size    int64      // of the complete lines
	digests map[string]bool
	owners  map[string]corral.OwnerState // the last line about each counts
}

// readRevocations reads the list at path. A line that a crash cut short is removed: its transaction was never
// committed.
func readRevocations(path string) (*revocations, error) {
	r := &revocations{path: path, digests: map[string]bool{}, owners: map[string]corral.OwnerState{}}
	text, err := input.ReadFile(path, maxRevoked)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the list of revocations: %w", err)
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for i, line := range lines(whole) {
		if err := r.note(line); err != nil {
			return nil, corral.Errorf(corral.Invalid, "line %d of %s: %w; corrald cannot start without the complete "+
				"list: remove that line, and repeat the revocation that it recorded", i+1, path, err)
		}
	}
	r.size = int64(len(whole))
	if len(whole) == len(text) {
		return r, nil
	}
	return r, os.Truncate(path, r.size)
}

// lines splits a text that ends with a newline into lines.
func lines(text []byte) []string {
	return slices.Collect(func(yield func(string) bool) {
		for line := range strings.Lines(string(text)) {
			if !yield(strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	})
}

// note parses and records one line: WORD TIME REST.
func (r *revocations) note(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	at, what, _ := strings.Cut(rest, " ")
	if _, err := time.Parse(time.RFC3339, at); err != nil {
		return corral.Errorf(corral.Invalid, "%.120q is not WORD TIME REST", line)
	}
	name, ofOwner := strings.CutPrefix(word, ownerWord)
	switch {
	case ofOwner && slices.Contains(corral.OwnerStates, corral.OwnerState(what)):
		r.owners[name] = corral.OwnerState(what)
	case strings.HasPrefix(word, "sha256:") && len(word) == len("sha256:")+64:
		r.digests[word] = true
	default:
		return corral.Errorf(corral.Invalid, "%.120q names neither a token nor an owner", line)
	}
	return nil
}

// append adds lines to the file and returns once they are on the disk. After a failure the file is unchanged and the
// transaction is not committed: a revocation that cannot be recorded is reported as failed. The sync takes some
// milliseconds within the one write transaction; revocations are rare.
func (r *revocations) append(list []string) error {
	if len(list) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return fmt.Errorf("opening the list of revocations: %w", err)
	}
	text := strings.Join(list, "\n") + "\n"
	_, err := r.file.WriteAt([]byte(text), r.size)
	if err == nil {
		err = r.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("writing the list of revocations: %w", errors.Join(err, r.file.Truncate(r.size)))
	}
	r.size += int64(len(text))
	for _, line := range list {
		if err := r.note(line); err != nil {
			return err // unreachable: we wrote the line
		}
	}
	return nil
}

// open opens the file for appending. The caller holds r.mu.
func (r *revocations) open() (err error) {
	if r.file != nil {
		return nil
	}
	r.file, err = os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(r.file.Chmod(0o600), atomicfile.SyncFolder(filepath.Dir(r.path)))
}

// close closes the file.
func (r *revocations) close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// has reports whether the list contains a token.
func (r *revocations) has(digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.digests[digest]
}

// all returns the contents of the list.
func (r *revocations) all() (digests []string, owners map[string]corral.OwnerState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.digests)), maps.Clone(r.owners)
}

// stamped formats a time for the list.
func stamped(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// list schedules a line to be written just before the transaction is committed.
func (t *Tx) list(word, rest string) { t.lines = append(t.lines, word+" "+stamped(t.now)+" "+rest) }

// heedList applies the list to the rows where the list is stricter, and adds to the list any revoked tokens that are
// only in the rows. The latter exist in a database that is older than the list or has lost it.
func (d *DB) heedList(ctx context.Context) error {
	digests, owners := d.revoked.all()
	return d.Whole().Write(ctx, Actor, func(whole *WholeTx) error {
		t := whole.all
		text, err := json.Marshal(digests)
		if err != nil {
			return err // unreachable: strings
		}
		const listed = "state = 'VALID' and digest in (select value from json_each(?))"
		back, err := tokens.list(t, where(listed, string(text)))
		for _, k := range back {
			if err == nil {
				_, err = t.RevokeToken(k.ID, listedReason)
			}
		}
		if err == nil {
			err = t.listRevoked()
		}
		for _, name := range slices.Sorted(maps.Keys(owners)) {
			if err == nil {
				err = t.heedOwner(name, owners[name])
			}
		}
		return err
	})
}

// listRevoked adds all REVOKED tokens to the list.
func (t *Tx) listRevoked() error {
	all, err := tokens.list(t, where("state = 'REVOKED'"))
	for _, k := range all {
		if !t.revoked.has(k.Digest) {
			t.list(k.Digest, strconv.FormatInt(int64(k.ID), 10))
		}
	}
	return err
}

// listedReason is the reason for revoking objects that were revoked according to the list but not the rows.
const listedReason = "it was revoked before, as the list beside the database says: corrald had crashed, or a backup " +
	"was put back"

// heedOwner suspends or ends an owner again if the list is stricter than the row. A stricter row stays: an account
// that was reinstated after the backup must be reinstated once more, which a person can do at any time. The objects
// of an ended owner that a backup brings back are removed by the loop that ends accounts.
func (t *Tx) heedOwner(name string, listed corral.OwnerState) error {
	o, err := t.Owner(name)
	switch {
	case err != nil && corral.KindOf(err) != corral.NotFound:
		return err
	case listed == corral.OwnerSuspended && (err != nil || o.State == corral.OwnerActive):
		_, err = t.MoveOwner(name, corral.OwnerSuspend, listedReason)
	case listed == corral.OwnerEnding && (err != nil || o.State == corral.OwnerActive ||
		o.State == corral.OwnerSuspended):
		_, err = t.MoveOwner(name, corral.OwnerEnd, listedReason)
	default:
		err = nil
	}
	return err
}

// MergeRevoked merges the lines of one list into another, ordered by time, so that the result contains all lines of
// both. Neither may be in use. A missing list counts as empty.
func MergeRevoked(into, from string) error {
	var all []string
	for _, name := range []string{from, into} {
		r, err := readRevocations(name) // so that an invalid line is an error here, and a truncated one is left out
		if err != nil {
			return err
		}
		text, err := input.ReadFile(name, maxRevoked)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		all = append(all, lines(text[:r.size])...)
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b string) int { return strings.Compare(timeOf(a), timeOf(b)) })
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(line string) bool {
		twice := seen[line]
		seen[line] = true
		return twice
	})
	return atomicfile.Keep(into, []byte(strings.Join(all, "\n")+"\n"), 0o600)
}

// timeOf returns the time of a line. All times have the same format, so they can be compared as text.
func timeOf(line string) string {
	_, rest, _ := strings.Cut(line, " ")
	at, _, _ := strings.Cut(rest, " ")
	return at
}
