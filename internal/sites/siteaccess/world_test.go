package siteaccess

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/fork"
	"github.com/corral-pilot/corral/gridsite/headnode"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/ssh"
	"github.com/corral-pilot/corral/internal/kit/programs"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// mine marks the roots of a test's sites.
const mine = "0123 me@here"

// backends returns corrald's backends with the ssh files of a home directory.
func backends(home string) gridsite.Backends {
	return gridsite.Backends{
		Transports: map[string]gridsite.Dialer{
			"local": func(string, string) (gridsite.Conn, error) { return local.Conn{}, nil },
			"ssh":   func(_, contact string) (gridsite.Conn, error) { return ssh.New(contact, ssh.Options{Home: home}) },
		},
		Dialects: map[string]func(conn gridsite.Conn, root string) gridsite.Batch{
			"fork": func(conn gridsite.Conn, root string) gridsite.Batch { return fork.New(conn, root) },
		},
		Head: func(conn gridsite.Conn, root string) gridsite.Head { return headnode.New(conn, root) },
	}
}

// A world is a Prober over a real store, for sites on this machine.
type world struct {
	t      *testing.T
	db     *store.DB
	dir    string
	reach  *Reach
	prober *Prober
}

// door is the address to which workers would connect.
type door string

func (d door) For(corral.Site) ([]string, string, error) {
	return []string{"unix:" + string(d)}, "", nil
}

func (d door) Dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", string(d))
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "r") // short, because it contains a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	address := door(filepath.Join(dir, "w"))
	l, err := net.Listen("unix", string(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w := &world{t: t, db: storetest.OpenTest(t), dir: dir, reach: New(backends(""), mine)}
	w.prober = NewProber(slog.New(slog.DiscardHandler), w.db, w.reach, address)
	return w
}

// site creates a READY site on this machine with the real pilot in place of its package's.
func (w *world) site(name string) (s corral.Site) {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) {
		s, err = tx.CreateSite(corral.Site{Name: name, Owner: "local", Contact: "local:", Batch: "fork", Root: filepath.Join(w.dir, name)})
		for _, move := range []corral.SiteMove{corral.SiteStage, corral.SiteStaged} {
			if err == nil {
				s, err = tx.MoveSite(s.ID, move, "")
			}
		}
		return err
	})
	head := headnode.New(local.Conn{}, s.Root)
	platform, err := head.Platform(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(func(tx *store.Tx) (err error) {
		s, err = tx.SetSite(s.ID, func(s *corral.Site) {
			s.Platform, s.Package, s.PackageDigest = platform, "pilot", "sha256:"+strings.Repeat("1", 64)
		})
		return err
	})
	built, err := programs.Plain()
	if err != nil {
		w.t.Fatal(err)
	}
	program, err := delivery.PilotProgram(s)
	if err != nil {
		w.t.Fatal(err)
	}
	binary, err := os.ReadFile(filepath.Join(built, "pilot"))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(filepath.Join(s.Root, program)), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(s.Root, program), binary, 0o700)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) write(fn func(*store.Tx) error) {
	w.t.Helper()
	if err := storetest.All(w.db).Write(context.Background(), "local", fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) siteNow(id corral.SiteID) (s corral.Site) {
	w.t.Helper()
	if err := storetest.All(w.db).View(context.Background(), func(tx *store.Tx) (err error) { s, err = tx.Site(id); return err }); err != nil {
		w.t.Fatal(err)
	}
	return s
}
