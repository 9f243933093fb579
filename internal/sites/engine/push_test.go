package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
)

// elsewhere is a site on this machine that cannot see corrald's mirror.
type elsewhere struct{ gridsite.Head }

func (elsewhere) Sees(context.Context, string) (bool, error) { return false, nil }

// A site that no mirror answers gets the package by push, and its history records the tries.
func TestPushWhenNoMirrorAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := backends("")
	head := b.Head
	b.Head = func(conn gridsite.Conn, root string) gridsite.Head { return elsewhere{head(conn, root)} }
	w.reaches(b)
	if err := w.cfg.Catalog.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.write(func(tx *store.Tx) error {
		m, err := tx.CreateMirror(corral.Mirror{Name: "silent", Owner: "local", URL: "http://" + vacant(t)})
		if err == nil {
			_, err = tx.CheckMirror(m.ID, []corral.PackageID{1}, "")
		}
		return err
	})
	w.runEngine()
	s := w.site("far")
	w.siteIs(s.ID, corral.SiteReady)
	var ways, tries []string
	w.view(func(tx *store.Tx) error {
		entries, err := tx.History(corral.ObjectSite, int64(s.ID), store.Page{})
		for _, entry := range entries {
			switch entry.Event {
			case "supply":
				ways = append(ways, entry.Reason)
			case "fetch":
				tries = append(tries, entry.Reason)
			}
		}
		return err
	})
	if len(ways) != 2 || !strings.Contains(ways[0], "is delivered by mirrors") || !strings.Contains(ways[1], "is delivered by push: no mirror answered") {
		t.Errorf("ways %q, want mirrors, then push", ways)
	}
	if len(tries) != 2 || !strings.Contains(tries[0], "connection refused") || !strings.Contains(tries[1], ".incoming") {
		t.Errorf("tries %q, want the silent mirror, then what was pushed", tries)
	}
}
