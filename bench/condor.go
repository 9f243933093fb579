package main

// Measurements of an HTCondor pool need a separate corrald, with the packages built and one pool started. Jobs are
// submitted to that pool in two ways: as a workflow of Corral's, and by condor_submit with the environment that `corral
// cluster env` prints. Both run /bin/true, so only the overhead is measured.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/bench/rig"
)

// pool is the name of the measured condor cluster.
const pool = "bench"

// unprivileged is the user that root measures as: HTCondor refuses root's jobs.
const unprivileged = "nobody"

// A condorStand is a service with an HTCondor cluster, and with both packages in its catalog.
type condorStand struct {
	rig.Service
	cluster corral.Cluster
	started time.Duration // start time of the pool
	dir     string        // for jobs; corrald's user may write to it
	env     []string      // for HTCondor's commands
}

// onCondor starts a stand below dir, calls do and stops the stand.
func (p plan) onCondor(ctx context.Context, dir string, do func(*condorStand) error) (err error) {
	runAs := ""
	if os.Getuid() == 0 {
		runAs = unprivileged
	}
	s := &condorStand{Service: rig.NewService(dir, runAs), dir: filepath.Join(dir, "jobs")}
	defer func() { err = errors.Join(err, s.End()) }()
	if err := openFolders(dir, s.dir); err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	if err := s.startPool(ctx, p); err != nil {
		return err
	}
	return do(s)
}

// startPool builds the packages, creates the cluster, and stores its environment.
func (s *condorStand) startPool(ctx context.Context, p plan) error {
	p.say("building HTCondor's packages")
	server := "unix:" + s.Corrald.Layout.Socket
	build := exec.CommandContext(ctx, filepath.Join(p.bin, "corral"), "--server", server, "-q", "package", "build")
	build.Stderr = p.stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("corral package build: %w", err)
	}
	from := time.Now()
	_, err := s.Client.CreateCluster(ctx, api.NewCluster{Name: pool, Kind: corral.Condor}, "")
	if err != nil {
		return err
	}
	if s.cluster, err = s.Client.WaitCluster(ctx, pool, string(corral.ClusterReady), patience); err != nil {
		return err
	}
	s.started = time.Since(from)
	return s.findEnv(ctx)
}

// openFolders creates folders that another user may enter, and makes the last one writable for this user. Root's
// corrald runs as that user, while the temporary directory belongs to root.
func openFolders(dir, jobs string) error {
	for _, d := range []string{filepath.Dir(dir), dir, jobs} {
		if err := errors.Join(os.MkdirAll(d, 0o755), os.Chmod(d, 0o755)); err != nil {
			return err
		}
	}
	return os.Chmod(jobs, 0o777|os.ModeSticky)
}

// findEnv requests the environment for HTCondor's commands, like `corral cluster env`.
func (s *condorStand) findEnv(ctx context.Context) error {
	env, err := s.Client.ClusterEnv(ctx, pool)
	if err != nil {
		return err
	}
	path := append(env.Path, os.Getenv("PATH"))
	s.env = append(os.Environ(), "PATH="+strings.Join(path, ":"))
	for _, v := range env.Variables {
		s.env = append(s.env, v.Name+"="+v.Value)
	}
	return nil
}

// condor runs an HTCondor command as the pool's owner.
func (s *condorStand) condor(ctx context.Context, argv ...string) ([]byte, error) {
	if s.Corrald.RunAs != "" {
		argv = append([]string{"setpriv", "--reuid", s.Corrald.RunAs, "--regid", "nogroup", "--clear-groups"}, argv...)
	}
	argv = append([]string{"env"}, argv...) // so that the PATH of the new environment is used
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return out, nil
}

// allocate requests one slot at a site and waits for it.
func (s *condorStand) allocate(ctx context.Context, site corral.Site) (corral.Glidein, error) {
	g, err := s.askSlot(ctx, site, 1024)
	if err != nil {
		return g, err
	}
	return s.Client.WaitGlidein(ctx, g.ID, api.UntilWorkers, patience)
}

// askSlot requests a glidein with one slot.
func (s *condorStand) askSlot(ctx context.Context, site corral.Site, mib int) (corral.Glidein, error) {
	return s.Client.CreateGlidein(ctx, api.NewGlidein{
		Site: site.Name, Cluster: pool,
		Shape: corral.Shape{Hosts: 1, CPUs: 1, MemoryMiB: mib, Walltime: corral.Seconds(walltime)},
	}, "")
}

// removeGlidein ends a glidein at once and returns when nothing of it remains.
func (s *condorStand) removeGlidein(ctx context.Context, g corral.Glidein) error {
	if _, err := s.Client.RemoveGlidein(ctx, g.ID, true); err != nil {
		return err
	}
	_, err := s.Client.WaitGlidein(ctx, g.ID, string(corral.GlideinDeleted), patience)
	return err
}

// removeSite returns when the cleanup job has removed everything at the site.
func (s *condorStand) removeSite(ctx context.Context, site corral.Site) error {
	if _, err := s.Client.RemoveSite(ctx, site.Name, false); err != nil {
		return err
	}
	_, err := s.Client.WaitSite(ctx, fmt.Sprint(site.ID), string(corral.SiteDeleted), patience)
	return err
}

// runNoop runs a workflow with one no-op task and returns when it has ended.
func (s *condorStand) runNoop(ctx context.Context) error {
	document, err := independent(1)
	if err != nil {
		return err
	}
	n := request(document, corral.RunOptions{})
	n.Cluster, n.SourceDir = pool, s.dir
	r, err := s.Client.CreateRun(ctx, n, "")
	if err != nil {
		return err
	}
	if r, err = s.Client.WaitRun(ctx, r.ID, patience); err == nil && r.State != corral.RunSucceeded {
		err = corral.Errorf(corral.Failed, "run %d is %s: %s", r.ID, r.State, r.Reason)
	}
	return err
}

// submit submits n jobs that run /bin/true, with mib MiB of memory each, to condor_submit; their events are written to
// log.
func (s *condorStand) submit(ctx context.Context, log string, mib, n int) error {
	name := filepath.Join(s.dir, log+".sub")
	if err := os.WriteFile(name, noopJobs(log, mib, n), 0o644); err != nil {
		return err
	}
	_, err := s.condor(ctx, "condor_submit", "-terse", name)
	return err
}

// noopJobs returns a description of n jobs for condor_submit.
func noopJobs(log string, mib, n int) []byte {
	return fmt.Appendf(nil, "executable = /bin/true\ntransfer_executable = false\nshould_transfer_files = YES\n"+
		"request_cpus = 1\nrequest_memory = %d\nlog = %s\nqueue %d\n", mib, log, n)
}

// submitNoop runs /bin/true with condor_submit and returns when the log reports its end.
func (s *condorStand) submitNoop(ctx context.Context, round int) error {
	log := fmt.Sprintf("noop%d.log", round)
	if err := s.submit(ctx, log, 64, 1); err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(filepath.Join(s.dir, log))
		if err == nil && strings.Contains(string(b), "Job terminated.") {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
