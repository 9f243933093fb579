package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// pool is the name of the demo's cluster of kind condor.
const pool = "pool"

// fetchPackages brings the packages of HTCondor into the demo's directory, where corrald can read them.
func (d *demo) fetchPackages(ctx context.Context) error {
	began := time.Now()
	files, err := d.cfg.Packages(ctx, d.doing)
	if err != nil {
		return err
	}
	dir := d.packages()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a directory for packages: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("making a directory for packages: %w", err)
	}
	for i, file := range files {
		size, err := bring(file, filepath.Join(dir, filepath.Base(file)))
		if err != nil {
			return fmt.Errorf("copying a package: %w", err)
		}
		format, args := "%s, %.1f MiB", []any{filepath.Base(file), float64(size) / (1 << 20)}
		if i > 0 {
			d.more(format, args...)
			continue
		}
		d.say("packages", format, args...)
	}
	d.more("made of Debian's packages, or found in the cache, in %s", round(time.Since(began)))
	return nil
}

func (d *demo) packages() string { return filepath.Join(d.dir, "packages") }

// bring copies a file for everybody to read.
func bring(from, to string) (size int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	if size, err = io.Copy(out, in); err != nil {
		return 0, err
	}
	if err := out.Chmod(0o644); err != nil {
		return 0, err
	}
	return size, out.Close()
}

// startPool makes a cluster of kind condor.
func (d *demo) startPool(ctx context.Context) error {
	d.doing("starting an HTCondor pool")
	files, err := filepath.Glob(filepath.Join(d.packages(), "*"))
	if err != nil {
		return fmt.Errorf("looking for packages: %w", err) // unreachable: the pattern is well formed
	}
	for _, file := range files {
		if _, err := d.cl.ImportPackage(ctx, api.NewPackage{Source: file, Sign: true}, ""); err != nil {
			return err
		}
	}
	began := time.Now()
	if _, err := d.cl.CreateCluster(ctx, api.NewCluster{Name: pool, Kind: corral.Condor}, ""); err != nil {
		return err
	}
	k, err := d.cl.WaitCluster(ctx, pool, string(corral.ClusterReady), patience)
	if err != nil {
		return err
	}
	d.cluster = pool
	d.say("pool", "HTCondor %s listens on %s, %s after it was asked for", k.Version, k.Collector, round(time.Since(began)))
	return nil
}

// options of the run. HTCondor needs longer for a job than most tasks of the example run, so several tasks
// become one.
func (d *demo) options() corral.RunOptions {
	if d.cfg.Kind != corral.Condor {
		return corral.RunOptions{}
	}
	return corral.RunOptions{Clustering: fmt.Sprintf("horizontal=%d", jobsOfLevel(d.plan))}
}

// jobsOfLevel leaves each pilot two jobs of a level, so that one that is slow holds up less.
func jobsOfLevel(p plan) int { return 2 * p.pilots }
