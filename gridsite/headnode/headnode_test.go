package headnode_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/headnode"
	"github.com/corral-pilot/corral/gridsite/local"
)

const program = "boot/0123/pilot"

func opens(content string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
}

func mine(before bool) gridsite.Claim {
	return gridsite.Claim{Owner: "0123 ann@here", Before: before}
}

// wantRefused expects a definite refusal with these words, and no other kind of error.
func wantRefused(t *testing.T, err error, words string) {
	t.Helper()
	var no *gridsite.Refused
	if !errors.As(err, &no) || !strings.Contains(err.Error(), words) {
		t.Errorf("%v, want it refused with %q", err, words)
	}
}

// A root is claimed, receives files, is refused to other owners in the meantime, and is removed as a whole.
func TestLifeOfARoot(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "it's a $ROOT", "site")
	n := headnode.New(local.Conn{}, root)
	for range 2 {
		if err := errors.Join(n.Ping(t.Context()), n.Check(t.Context(), mine(false))); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Dir(root)); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("the check left something: %v", err)
		}
	}
	if err := n.Boot(t.Context(), program, mine(false), opens("#!/bin/sh\necho \"$@\"\n")); err != nil {
		t.Fatal(err)
	}
	if err := n.Boot(t.Context(), program, mine(true), func() (io.ReadCloser, error) { return nil, errors.New("opened again") }); err != nil {
		t.Errorf("booted again: %v", err)
	}
	if there, err := n.Has(t.Context(), program, true); !there || err != nil {
		t.Errorf("Has = %t, %v", there, err)
	}
	s, err := n.Start(t.Context(), program, "a b", "c")
	if err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(s); string(said) != "a b c\n" || err != nil || s.Wait() != nil {
		t.Errorf("the program said %q, %v", said, err)
	}
	for _, below := range []string{root, filepath.Join(root, "below", "it")} {
		err := headnode.New(local.Conn{}, below).Check(t.Context(), gridsite.Claim{Owner: "4567 bob@there"})
		wantRefused(t, err, "another corrald, that of ann@here")
	}
	if err := n.Check(t.Context(), mine(true)); err != nil {
		t.Errorf("our own root again: %v", err)
	}
	if err := n.Sweep(t.Context(), true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(root)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the root, or what was made above it, is still there: %v", err)
	}
}

// Directories created above a root are removed with it, except those that existed before or that others have used
// since.
func TestParentsOfARootGoWithIt(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} { // swept after a site's life; released because the root was refused
		top := t.TempDir()
		shared := filepath.Join(top, "there", "shared")
		if err := os.Mkdir(filepath.Join(top, "there"), 0o700); err != nil {
			t.Fatal(err)
		}
		one, other := filepath.Join(shared, "a", "b", "one"), filepath.Join(shared, "other")
		for i, root := range []string{one, other} {
			n := headnode.New(local.Conn{}, root)
			for _, p := range []string{program, "boot/4567/pilot"} { // the second one finds the root
				if err := n.Boot(t.Context(), p, mine(i > 0), opens("program")); err != nil {
					t.Fatal(err)
				}
			}
			if err := n.Sweep(t.Context(), before && i > 0); err != nil {
				t.Error(err)
			}
			if i > 0 {
				continue
			}
			if _, err := os.Stat(shared); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what was made above %s stays: %v", root, err)
			}
			if err := os.MkdirAll(filepath.Join(shared, "of others"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(filepath.Join(shared, "of others")); err != nil {
			t.Errorf("what others have put there: %v", err)
		}
		if left, err := os.ReadDir(shared); len(left) != 1 || err != nil {
			t.Errorf("%v, %v: want nothing of ours", left, err)
		}
	}
}

// A package is pushed once, to the path in its file URL; a token is replaced in the directory of its job, which must
// exist.
func TestPushAndReplace(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	n := headnode.New(local.Conn{}, root)
	url, err := n.Push(t.Context(), "packages/a b.tar", "packages/a b/manifest", opens("archive"))
	if err != nil || url != "file://"+root+"/packages/a%20b.tar" {
		t.Fatalf("Push = %q, %v", url, err)
	}
	if b, err := os.ReadFile(filepath.Join(root, "packages", "a b.tar")); string(b) != "archive" {
		t.Errorf("pushed %q, %v", b, err)
	}
	if err := os.WriteFile(filepath.Join(root, "manifest"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := n.Push(t.Context(), "packages/other", "manifest", opens("archive")); again == "" || err != nil {
		t.Errorf("Push = %q, %v", again, err)
	}
	if there, err := n.Has(t.Context(), "packages/other", false); there || err != nil {
		t.Errorf("what is installed was pushed again: %v", err)
	}
	if err := n.Replace(t.Context(), "tag", "token", []byte("new")); err == nil {
		t.Error("a token was put where there is no job")
	}
	job := filepath.Join(root, "jobs", "tag")
	if err := errors.Join(os.MkdirAll(job, 0o700), n.Replace(t.Context(), "tag", "token", []byte("new"))); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(job, "token")); string(b) != "new" {
		t.Errorf("the token is %q, %v", b, err)
	}
}

// full is a machine with space for small files only.
type full struct{ local.Conn }

func (full) Put(context.Context, string, fs.FileMode, io.Reader) error {
	return errors.New("writing it: cat: write error: No space left on device")
}

// A file for which there is no space is refused, and a root that was just claimed is removed; a root that was ours
// before remains.
func TestBootWithoutRoom(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "site")
	n := headnode.New(full{}, root)
	wantRefused(t, n.Boot(t.Context(), program, mine(false), opens("")), "no room for the pilot binary: No space left on device")
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
	wantRefused(t, n.Boot(t.Context(), program, mine(true), opens("")), "no room")
	if _, err := os.Stat(filepath.Join(root, ".corral-site")); err != nil {
		t.Errorf("the mark of a root that was ours: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, headnode.New(local.Conn{}, filepath.Join(file, "site")).Boot(t.Context(), program, mine(false), opens("")), "making ")
}

// The files of others below a root that was never ours are not touched, even when the root is removed.
func TestSweepKeepsForeignFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	theirs := filepath.Join(root, "thesis.tex")
	if err := os.WriteFile(theirs, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n := headnode.New(local.Conn{}, root)
	wantRefused(t, n.Check(t.Context(), mine(false)), "not empty")
	if err := n.Sweep(t.Context(), false); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Errorf("their file: %v", err)
	}
}

// The platform can be detected with nothing but a shell.
func TestPlatformOfThisMachine(t *testing.T) {
	t.Parallel()
	p, err := headnode.New(local.Conn{}, "/nowhere").Platform(t.Context())
	if err != nil || p.OS != "linux" || p == (corral.Platform{OS: "linux"}) {
		t.Errorf("Platform = %+v, %v", p, err)
	}
}
