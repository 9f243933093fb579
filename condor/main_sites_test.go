//go:build sites

package condor

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/programs"
)

// release is the folder of a real HTCondor.
var release string

func TestMain(m *testing.M) {
	flag.Parse()
	// Simulates a job of another pool, whose settings must not affect ours.
	for name, value := range map[string]string{"_CONDOR_COLLECTOR_HOST": "192.0.2.1:9618", "CONDOR_INHERIT": "1 <192.0.2.1:9618>"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	// HTCondor spends most of the time waiting for itself.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	start := time.Now()
	var err error
	if release, err = programs.HTCondor(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("HTCondor in %s after %v\n", release, time.Since(start).Round(time.Millisecond))
	status := m.Run()
	if err := endShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

var (
	sharedOnce sync.Once
	shared     *Pool // the pool returned by common
)

// common returns a pool with workers, shared by tests that neither stop nor configure it.
func common(t testing.TB) *Pool {
	t.Helper()
	sharedOnce.Do(func() {
		dir, err := openFolder()
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPool(poolConfig(t, dir, withStartd))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(soon(t)); err != nil {
			t.Fatal(err)
		}
		shared = p
	})
	if shared == nil {
		t.Fatal("the common pool did not start")
	}
	return shared
}

// endShared ends the common pool quickly: a startd that finds no collector takes 15 s to end by itself, and is killed.
func endShared() error {
	if shared == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := shared.Stop(ctx); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Dir(shared.config.Dir))
}

// openFolder creates a folder that the pool's owner can enter, unlike that of t.TempDir.
func openFolder() (string, error) {
	dir, err := os.MkdirTemp("", "condor-test-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// folder returns such a folder, which is removed when the test ends.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := openFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func poolConfig(t testing.TB, dir, extra string) PoolConfig {
	t.Helper()
	return PoolConfig{Dir: filepath.Join(dir, "pool"), Release: release, Address: freeAddress(t), RunAs: programs.Unprivileged(), Extra: extra}
}

// newPool returns a pool that is stopped when the test ends, after which no process of it may be left.
func newPool(t testing.TB) *Pool {
	t.Helper()
	p, err := NewPool(poolConfig(t, folder(t), ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := p.Stop(ctx); err != nil {
			t.Error(err)
		}
		noDaemons(t, p)
	})
	return p
}

func noDaemons(t testing.TB, p *Pool) {
	t.Helper()
	for _, d := range running(p.tools.Config) {
		t.Errorf("process %d of the pool is left", d.pid)
		d.close()
	}
}

func startPool(t testing.TB) *Pool {
	t.Helper()
	p := newPool(t)
	if err := p.Start(soon(t)); err != nil {
		t.Fatal(err)
	}
	return p
}

// soon is a context for steps of a second or two, which may take longer on a slow machine or one busy with other tests:
// if a busy startd does not answer a claim in time, the claim is repeated when the slot updates its ad, after five
// minutes.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until done returns true.
func eventually(t testing.TB, what string, done func() (bool, error)) {
	t.Helper()
	if err := poll(soon(t), done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
