package store

// What was revoked is also in a file beside the database, and only grows there. A backup that is put back brings the
// rows of tokens back as they were when it was made; the file is never put back, so that a token that was revoked since
// stays revoked, and an owner who was suspended or ended since stays so.
//
// The file is text, so that a person can look into it, and merge it with what is left of another machine's:
//
//	sha256:HEX TIME ID      the token with this digest, and this id, was revoked
//	owner:NAME TIME STATE   the account of an owner was moved to this state; the last line about an owner counts
//
// A line is on the disk before the transaction is committed that makes it true. A crash between the two leaves a line
// more than the rows say, and the next Open brings the rows to what the file says. The other way round a crash and a
// backup together could bring a token back.

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

// RevokedOf is the file that lists what was revoked in the database at path. There is none before the first revocation,
// and it is never removed while the database is there.
func RevokedOf(path string) string { return path + ".revoked" }

// maxRevoked bounds what is read of a list, in bytes: half a million tokens.
const maxRevoked = 64 << 20

// ownerWord begins the lines about owners; those about tokens begin with the digest of one.
const ownerWord = "owner:"

// revocations are the list of one database. Lines are appended by the one writer; readers ask at any time.
type revocations struct {
	path string

	mu      sync.Mutex // guards following
	file    *os.File   // nil: there is none yet
	size    int64      // of what is whole
	digests map[string]bool
	owners  map[string]corral.OwnerState // the last line about each counts
}

// readRevocations reads the list at path. A line that a crash cut off is removed: nothing was committed after it.
func readRevocations(path string) (*revocations, error) {
	r := &revocations{path: path, digests: map[string]bool{}, owners: map[string]corral.OwnerState{}}
	text, err := input.ReadFile(path, maxRevoked)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the list of what was revoked: %w", err)
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for i, line := range lines(whole) {
		if err := r.note(line); err != nil {
			return nil, corral.Errorf(corral.Invalid, "line %d of %s: %w; corrald does not start without knowing what "+
				"was revoked: remove that line, and revoke again what it was about", i+1, path, err)
		}
	}
	r.size = int64(len(whole))
	if len(whole) == len(text) {
		return r, nil
	}
	return r, os.Truncate(path, r.size)
}

// lines are those of a text that ends with the end of a line.
func lines(text []byte) []string {
	return slices.Collect(func(yield func(string) bool) {
		for line := range strings.Lines(string(text)) {
			if !yield(strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	})
}

// note takes in one line: WORD TIME REST.
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
		return corral.Errorf(corral.Invalid, "%.120q is about neither a token nor an owner", line)
	}
	return nil
}

// append adds lines to the file and has them on the disk when it returns. After a failure the file is as it was, and
// the transaction is not committed: a revocation that cannot be kept is answered as one that has failed. The sync costs
// some milliseconds, in the one write transaction; revocations are rare.
func (r *revocations) append(list []string) error {
	if len(list) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return fmt.Errorf("opening the list of what was revoked: %w", err)
	}
	text := strings.Join(list, "\n") + "\n"
	_, err := r.file.WriteAt([]byte(text), r.size)
	if err == nil {
		err = r.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("writing the list of what was revoked: %w", errors.Join(err, r.file.Truncate(r.size)))
	}
	r.size += int64(len(text))
	for _, line := range list {
		if err := r.note(line); err != nil {
			return err // unreachable: the line is ours
		}
	}
	return nil
}

// open opens the file for lines to come; r.mu is held.
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

// has reports whether a token is in the list.
func (r *revocations) has(digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.digests[digest]
}

// all returns what the list has.
func (r *revocations) all() (digests []string, owners map[string]corral.OwnerState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.digests)), maps.Clone(r.owners)
}

// stamped is a time in the list.
func stamped(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// list has a line written when the transaction is committed, before that.
func (t *Tx) list(word, rest string) { t.lines = append(t.lines, word+" "+stamped(t.now)+" "+rest) }

// heedList brings rows to what the list says, if that is more than they say, and the list to what rows say of tokens: a
// database that is older than the list, or that has lost it, has tokens that were revoked without a line.
func (d *DB) heedList(ctx context.Context) error {
	digests, owners := d.revoked.all()
	return d.Whole().Write(ctx, Actor, func(whole *WholeTx) error {
		t := whole.all
		text, err := json.Marshal(digests)
		if err != nil {
			return err // unreachable: strings
		}
		var c conditions
		c.add("state = 'VALID' and digest in (select value from json_each(?))", string(text))
		back, err := tokens.list(t, c)
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

// listRevoked has the list name all tokens that are REVOKED.
func (t *Tx) listRevoked() error {
	var c conditions
	c.add("state = 'REVOKED'")
	all, err := tokens.list(t, c)
	for _, k := range all {
		if !t.revoked.has(k.Digest) {
			t.list(k.Digest, strconv.FormatInt(int64(k.ID), 10))
		}
	}
	return err
}

// listedReason is why something is revoked of which the rows knew nothing.
const listedReason = "it was revoked before, as the list beside the database says: corrald had crashed, or a backup " +
	"was put back"

// heedOwner suspends or ends an owner again whose row says less than the list. A row that is stricter stays: an account
// that was let in again after the backup was made has to be let in once more, which a person can do at any time. What a
// backup brings back of an owner who was ended is removed by the worker that ends accounts, as it was before.
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

// MergeRevoked adds the lines of one list to another, in the order of time, so that nothing that either has is missing.
// Neither may be in use. Lists that are not there are empty.
func MergeRevoked(into, from string) error {
	var all []string
	for _, name := range []string{from, into} {
		r, err := readRevocations(name) // so that a line that is none is refused here, and a torn one is left out
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
	return replace(into, strings.Join(all, "\n")+"\n")
}

// timeOf is the time of a line. All have one form, so that they can be compared as text.
func timeOf(line string) string {
	_, rest, _ := strings.Cut(line, " ")
	at, _, _ := strings.Cut(rest, " ")
	return at
}

// replace puts a file in the place of another at once, on the disk.
func replace(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".revoked-") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return atomicfile.SyncFolder(filepath.Dir(name))
}
