package staging

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/packages"
)

// installed puts n packages of some 100 kB each into one cache, in the order of their last use.
func installed(t *testing.T, n int) (root string, dirs []string) {
	t.Helper()
	root = t.TempDir()
	m := Mirror{Dir: filepath.Join(t.TempDir(), "mirror")}
	for i := range n {
		h := header
		h.Version = fmt.Sprintf("0.%d", i)
		p, err := m.Build(h, fstest.MapFS{"bin/pilot": {Data: make([]byte, 100_000), Mode: 0o755}})
		if err != nil {
			t.Fatal(err)
		}
		dir, _, err := newFetcher(t).Install(t.Context(), root, Source{p, []string{fileURL(t, m, p)}})
		if err != nil {
			t.Fatal(err)
		}
		used := time.Now().Add(time.Duration(i-n) * time.Hour)
		if err := os.Chtimes(dir+useSuffix, used, used); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return root, dirs
}

func TestPruneTakesTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	root, dirs := installed(t, 4)
	release, err := Use(dirs[1]) // now the most recently used one
	if err != nil {
		t.Fatal(err)
	}
	gone, err := Prune(root, 250_000, dirs[3])
	if diff := cmp.Diff([]string{dirs[0], dirs[2]}, gone); diff != "" || err != nil {
		t.Errorf("Prune: %v (-want +got):\n%s", err, diff)
	}
	if gone, err := Prune(root, 1, dirs[3]); err != nil || len(gone) != 0 {
		t.Errorf("Prune of what is in use = %v, %v, want nothing", gone, err)
	}
	release()
	if gone, err := Prune(root, 1, dirs[3]); err != nil || len(gone) != 1 || gone[0] != dirs[1] {
		t.Errorf("Prune = %v, %v, want %s", gone, err, dirs[1])
	}
	base := filepath.Base(dirs[3])
	assertEntries(t, filepath.Join(root, "packages"), base, base+".use")
	if _, err := packages.Check(dirs[3]); err != nil {
		t.Error(err)
	}
}

func TestInstallTakesWhatWasPushed(t *testing.T) {
	t.Parallel()
	m, p := newMirror(t)
	root := t.TempDir()
	incoming, err := Incoming(root, p)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := m.Path(p)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		content []byte
		good    bool
	}{{changed(b), false}, {b, true}} {
		if err := os.MkdirAll(filepath.Dir(incoming), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(incoming, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := newFetcher(t).Install(t.Context(), root, Source{p, []string{"file://" + incoming}})
		if (err == nil) != c.good {
			t.Errorf("Install = %v, want success: %v", err, c.good)
		}
		if _, err := os.Stat(incoming); err == nil {
			t.Error("the pushed archive is still there")
		}
	}
}
