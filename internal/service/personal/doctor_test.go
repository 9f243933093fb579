package personal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/dbcheck"
	"github.com/corral-pilot/corral/internal/kit/xdg"
)

func timeLimit(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

func found(t *testing.T, findings []Finding, check string) Finding {
	t.Helper()
	for _, f := range findings {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("no finding about %s in %+v", check, findings)
	return Finding{}
}

// Every finding that is not OK has advice.
func TestEveryFindingHasAdvice(t *testing.T) {
	c := newCorrald(t)
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Layout.State, c.Layout.Cache = file, file+"/below"
	t.Setenv("PATH", t.TempDir())
	findings := Examine(t.Context(), c)
	for _, check := range []string{"programs", "tools of this machine", "state directory", "cache directory"} {
		if f := found(t, findings, check); f.OK || f.Found == "" || f.Advice == "" {
			t.Errorf("%s: %+v, want not OK, what was found, and advice", check, f)
		}
	}
	if f := found(t, findings, "state directory"); f.Found != file+" is not a directory" {
		t.Errorf("state directory: found %q", f.Found)
	}
	if f := found(t, findings, "data directory"); !f.OK {
		t.Errorf("data directory: %+v, want OK", f)
	}
	if entries, _ := os.ReadDir(c.Layout.Data); entries != nil {
		t.Error("examining made something")
	}
}

func TestPilotBelongsBesideCorrald(t *testing.T) {
	newCorrald(t) // without a pilot
	if f := programs(); f.OK || !strings.Contains(f.Advice, "the pilot binary belongs beside corrald") {
		t.Errorf("programs: %+v", f)
	}
}

func TestOtherVersion(t *testing.T) {
	c := newCorrald(t)
	start(t, c)
	if f := examineCorrald(t.Context(), c); !f.OK {
		t.Errorf("one of the same version: %+v, want OK", f)
	}
	c = newCorrald(t).inMood(t, "-old")
	start(t, c)
	if f := examineCorrald(t.Context(), c); f.OK || !strings.Contains(f.Found, "-old") {
		t.Errorf("one of another version: %+v, want not OK", f)
	}
}

// A finding may contain a colon and a space, like a path.
func TestFindingIsWhole(t *testing.T) {
	c := newCorrald(t)
	dir := filepath.Dir(c.Layout.Socket) + ": here"
	c.Layout.Socket = dir + "/corrald.sock"
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o770)); err != nil {
		t.Fatal(err)
	}
	if f := sockets(c); f.OK || !strings.HasPrefix(f.Found, dir+" has mode 0770, ") || !strings.HasPrefix(f.Advice, "chmod 700 "+dir) {
		t.Errorf("found %+v", f)
	}
}

// The finding about the database is the result of its last check; a missing database is noticed.
func TestDatabaseFinding(t *testing.T) {
	t.Parallel()
	l := xdg.Below(t.TempDir())
	if err := os.MkdirAll(l.State, 0o700); err != nil {
		t.Fatal(err)
	}
	is := func(ok bool, found, advice string) {
		t.Helper()
		f := database(l)
		if f.OK != ok || !strings.Contains(f.Found, found) || !strings.Contains(f.Advice, advice) || ok != (f.Advice == "") {
			t.Errorf("the finding is %+v, want OK %v, %q and %q", f, ok, found, advice)
		}
	}
	record := func(r dbcheck.Record) {
		t.Helper()
		if err := dbcheck.Write(l.Database(), r); err != nil {
			t.Fatal(err)
		}
	}
	is(true, "not checked yet", "")
	record(dbcheck.Record{At: time.Unix(0, 0), By: dbcheck.Start})
	is(false, l.Database()+" is missing", "corral admin restore --force --state "+l.State+" FILE")
	if err := os.WriteFile(l.Database(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	is(true, "whole at ", "")
	record(dbcheck.Record{At: time.Unix(0, 0), By: dbcheck.Backup, Damage: "page 7"})
	is(false, "(backup) found: page 7", "corral admin restore --force --state "+l.State+" FILE")
	if err := os.WriteFile(dbcheck.File(l.Database()), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	is(false, "reading the result of the last check", "start corrald again")
}
