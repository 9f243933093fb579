package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// pool is the name of the demo's cluster of kind condor.
const pool = "pool"

// fetchPackages writes the packages of HTCondor to the demo's directory, where corrald can read them. It is the first
// step, so that the part that takes longest, and needs a network, fails before any process is started.
func (d *demo) fetchPackages(ctx context.Context) error {
	d.out.doing("making packages of HTCondor")
	began := time.Now()
	dir := d.packages()
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o755)); err != nil {
		return fmt.Errorf("making a directory for packages: %w", err)
	}
	if err := d.cfg.Packages(ctx, dir, d.out.doing); err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking for packages: %w", err)
	}
	print := d.out.first("packages")
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			return fmt.Errorf("looking for packages: %w", err)
		}
		print("%s, %.1f MiB", f.Name(), float64(info.Size())/(1<<20))
	}
	d.out.more("were there after %s", round(time.Since(began)))
	return nil
}

func (d *demo) packages() string { return filepath.Join(d.dir, "packages") }

// startPool imports the packages into corrald's catalog and creates a cluster of kind condor, which all later pilots
// join.
func (d *demo) startPool(ctx context.Context) error {
	d.out.doing("starting an HTCondor pool")
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
	d.out.say("pool", "HTCondor %s listens on %s, %s after it was asked for", k.Version, k.Collector,
		round(time.Since(began)))
	return nil
}
