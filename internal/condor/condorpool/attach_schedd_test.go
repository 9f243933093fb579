//go:build sites

package condorpool

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/programs"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// TestAttachFindsTheOnlySchedd attaches without a schedd's name, and then uses `cluster env` as a user would.
func TestAttachFindsTheOnlySchedd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs := w.ready("theirs")
	c := w.await(w.attached("mine", theirs.Collector, w.token(theirs, owner(t))).ID, corral.ClusterReady)
	if names := w.schedds(theirs); len(names) != 1 || c.Schedd != names[0] {
		t.Fatalf("schedd %q, want the only one of %q", c.Schedd, names)
	}
	for _, command := range []string{"condor_q", "condor_submit -terse job.sub", "condor_q -totals", "condor_rm -all"} {
		if out, err := w.sh(c, command); err != nil {
			t.Errorf("%s: %v: %s", command, err, out)
		}
	}
	if again := w.restarted(c); again.State != corral.ClusterReady || again.Schedd != c.Schedd {
		t.Errorf("started again it is %+v", again)
	}
}

// TestAttachSaysWhichSchedds attaches to pools where it is not clear which schedd should accept the jobs.
func TestAttachSaysWhichSchedds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs := w.ready("theirs")
	first := w.schedds(theirs)[0]
	const other = `MyType = "Scheduler"
Name = "another@x"
Machine = "x"
MyAddress = "<127.0.0.1:9>"
ScheddIpAddr = "<127.0.0.1:9>"
ClassAdLifetime = 600
`
	if _, err := w.tools(theirs).Run(t.Context(), []byte(other), "condor_advertise", "-tcp", "UPDATE_SCHEDD_AD"); err != nil {
		t.Fatal(err)
	}
	w.eventually("two schedds", func() bool { return len(w.schedds(theirs)) == 2 })
	none := w.scheddless()
	secret := w.token(theirs, owner(t))
	for name, test := range map[string]struct{ collector, schedd, secret, want string }{
		"several":   {theirs.Collector, "", secret, "lists 2 schedds, another@x, " + first + ": remove the cluster, and create it with --schedd NAME"},
		"wrong":     {theirs.Collector, "third@x", secret, "does not list the schedd third@x, but another@x, " + first + ": when it appears, `corral cluster start wrong`"},
		"none":      {none.collector, "", none.secret, "does not list any schedd, so jobs cannot be submitted: when there is one, `corral cluster start none`"},
		"nonenamed": {none.collector, "third@x", none.secret, "lists neither the schedd third@x nor any other: when it appears, `corral cluster start nonenamed`"},
	} {
		c := w.attachedTo(name, test.collector, test.schedd, test.secret)
		c, _ = w.over(c.ID)
		if c.State != corral.ClusterFailed || !strings.Contains(c.Reason, test.want) {
			t.Errorf("%s: %s: %s, want %q", name, c.State, c.Reason, test.want)
		}
		t.Logf("%s: %s", name, c.Reason)
	}
	c, _ := w.over(w.attachedTo("named", theirs.Collector, first, secret).ID)
	if c.State != corral.ClusterReady || c.Schedd != first {
		t.Errorf("with one of the two named it is %+v", c)
	}

	// The schedd starts; then it ends, and the cluster reports that.
	none.begin()
	w.eventually("a cluster that has found its schedd", func() bool { return w.restarted(w.named("none")).State == corral.ClusterReady })
	none.end()
	w.eventually("the reason", func() bool {
		return strings.Contains(w.named("none").Reason, "does not list the schedd "+w.named("none").Schedd)
	})
}

// schedds returns the names of a pool's schedds.
func (w *world) schedds(c corral.Cluster) (names []string) {
	w.t.Helper()
	ads, err := w.tools(c).Query(w.t.Context(), "condor_status", []string{"-schedd"}, []string{"Name"})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, ad := range ads {
		name, _ := ad.Text("Name")
		names = append(names, name)
	}
	return names
}

// attachedTo is like attached, but with a schedd's name.
func (w *world) attachedTo(name, collector, schedd, secret string) (c corral.Cluster) {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) {
		c, err = tx.CreateCluster(corral.Cluster{Name: name, Owner: "local", Kind: corral.Condor, Attached: true, Collector: collector, Schedd: schedd})
		if err == nil {
			err = w.keepers.PutToken(c.ID, secret)
		}
		return err
	})
	return c
}

func (w *world) named(name string) (c corral.Cluster) {
	w.t.Helper()
	err := storetest.All(w.db).View(w.t.Context(), func(tx *store.Tx) (err error) {
		c, err = tx.ClusterNamed(name)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// restarted restarts a cluster and returns it when the restart is over.
func (w *world) restarted(c corral.Cluster) corral.Cluster {
	w.t.Helper()
	w.move(c.ID, corral.ClusterStart)
	c, _ = w.over(c.ID)
	return c
}

// sh runs a command in a shell with the variables of `corral cluster env`, in a folder that contains a job.
func (w *world) sh(c corral.Cluster, command string) (string, error) {
	w.t.Helper()
	env, err := w.keepers.Env(w.t.Context(), c.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	dir, err := os.MkdirTemp(w.dir, "shell-")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "job.sub"), []byte("executable = /bin/true\nqueue\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		w.t.Fatal(err)
	}
	account, err := condor.AccountFor(programs.Unprivileged())
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.CommandContext(w.t.Context(), "sh", "-c", command)
	cmd.Env, cmd.Dir = append(env, "HOME="+account.Home), dir
	for i, v := range cmd.Env {
		if strings.HasPrefix(v, "PATH=") {
			cmd.Env[i] = v + ":/usr/bin:/bin"
		}
	}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: account.UID, Gid: account.GID}}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A scheddless pool belongs to another party, whose schedd starts and ends at its owner's will.
type scheddless struct {
	collector, secret string
	begin, end        func()
}

func (w *world) scheddless() scheddless {
	w.t.Helper()
	address, err := condor.FreeAddress(w.keepers.cfg.Host)
	if err != nil {
		w.t.Fatal(err)
	}
	// Withdrawn ads are accepted here, as in a pool with HTCondor's default settings.
	pool, err := condor.NewPool(condor.PoolConfig{Dir: filepath.Join(w.dir, "scheddless"), Release: release, Address: address, RunAs: programs.Unprivileged(),
		Extra: "COLLECTOR.IGNORE_INVALIDATE = False"})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute) // for all that is done with the pool
	w.t.Cleanup(cancel)
	w.t.Cleanup(func() {
		if err := pool.Stop(ctx); err != nil {
			w.t.Error(err)
		}
	})
	if err := pool.Start(ctx); err != nil {
		w.t.Fatal(err)
	}
	out, err := pool.Tools().Run(ctx, nil, "condor_token_create", "-identity", owner(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	turn := func(command string, there int) func() {
		return func() {
			if out, err := pool.Tools().Run(ctx, nil, command, "-schedd"); err != nil {
				w.t.Fatalf("%v: %s", err, out)
			}
			w.eventually(fmt.Sprintf("%d schedds", there), func() bool {
				ads, err := pool.Tools().Query(ctx, "condor_status", []string{"-schedd"}, []string{"Name"})
				return err == nil && len(ads) == there
			})
		}
	}
	s := scheddless{address.String(), strings.TrimSpace(string(out)), turn("condor_on", 1), turn("condor_off", 0)}
	s.end()
	return s
}
