//go:build sites

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/programs"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/netns"
	packaging "github.com/corral-pilot/corral/packages/htcondor"
)

// A stand is a corrald with an HTCondor pool on one host, and a site whose jobs run on another. Only corrald's
// transport goes past the firewalls between the two, as ssh to a head node would.
type stand struct {
	*condorUser
	pool, node *netns.Host
}

func newStand(t *testing.T, topology netns.Topology) *stand {
	t.Helper()
	began := time.Now()
	s := &stand{}
	s.pool, s.node = netns.New(t, topology)
	door := openDoor(t, s.node)
	s.condorUser = newCondorUser(t)
	address := s.pool.Addr.String()
	s.atPool("PATH="+door+":"+opened()+":"+os.Getenv("PATH"), "CORRALD_POOL_ADDRESS="+address,
		"CORRALD_WORKER_LISTEN="+net.JoinHostPort(address, "0"))("corral up")
	made := madeForNode(t)
	s.must("package", "import", "--sign", made.worker)
	s.must("cluster", "create", "mine", "--kind", "condor", "--htcondor", made.release)
	s.must("site", "create", "node", "--contact", "local:", "--batch", "fork", "--wait")
	t.Logf("%6.1f s  corrald, its pool and the site are there", time.Since(began).Seconds())
	return s
}

// atPool returns a function that runs a script on the pool's host and returns what it prints.
func (s *stand) atPool(env ...string) func(script string) string {
	return func(script string) string {
		s.t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		start := s.pool.UserCommand
		if os.Getuid() == 0 {
			start = s.pool.Command // root's corrald becomes nobody by itself
		}
		cmd := start(ctx, "/bin/sh", "-euc", script)
		cmd.Env, cmd.Dir = append(slices.Clone(s.env), env...), s.open
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			s.t.Fatalf("%s: %v\n%s%s", script, err, out, &errs)
		}
		return string(out)
	}
}

// in runs a script on the pool's host with the cluster's environment.
func (s *stand) in(script string) string {
	s.t.Helper()
	return s.atPool()(`eval "$(corral cluster env mine)"; ` + script)
}

// A condorMade is an HTCondor for pools, and the package of what workers run.
type condorMade struct {
	release, worker string
	err             error
}

func madeForNode(t *testing.T) condorMade {
	t.Helper()
	made := makeForNode()
	if made.err != nil {
		t.Fatal(made.err)
	}
	return made
}

var makeForNode = sync.OnceValue(func() (m condorMade) {
	release, err := programs.HTCondor()
	if err != nil {
		return condorMade{err: err}
	}
	m.release = release
	from, err := packaging.Find(m.release)
	if err != nil {
		return condorMade{err: err}
	}
	f, err := os.Create(filepath.Join(opened(), "worker.tar.gz"))
	if err != nil {
		return condorMade{err: err}
	}
	_, err = from.Pack(f, packaging.Worker)
	m.worker, m.err = f.Name(), errors.Join(err, f.Close())
	return m
})

// doorProgram is internal/kit/netns/testdata/door, which the user nobody may run.
var doorProgram = sync.OnceValues(func() (string, error) {
	program := opened() + "/door"
	cmd := exec.Command("go", "build", "-ldflags=-w", "-o", program, "github.com/corral-pilot/corral/internal/kit/netns/testdata/door")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
})

// openDoor lets corrald's local transport start its shells on the node. It returns a folder for the beginning of
// corrald's PATH, with a sh that does.
func openDoor(t *testing.T, node *netns.Host) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "door-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	program, err := doorProgram()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	sh := fmt.Sprintf("#!/bin/sh\nPATH=${PATH#*:} exec %s enter %s \"$@\"\n", program, socket)
	if err := os.WriteFile(filepath.Join(dir, "sh"), []byte(sh), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	t.Cleanup(cancel)
	door := node.UserCommand(ctx, program, "serve", socket)
	door.Stderr = os.Stderr
	stdin, err := door.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := door.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := door.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := door.Wait(); err != nil {
			t.Errorf("the door to the node: %v", err)
		}
	})
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("the door to the node does not open: %v", err)
	}
	return dir
}

// tenJobs has HTCondor run ten jobs, and fails the test unless all ran on the node.
func (s *stand) tenJobs() {
	s.t.Helper()
	node, err := os.Readlink(s.node.Path())
	if err != nil {
		s.t.Fatal(err)
	}
	jobs := "executable = /bin/readlink\ntransfer_executable = false\nshould_transfer_files = YES\nrequest_memory = 16\n" +
		"arguments = /proc/self/ns/net\noutput = out.$(Process)\nlog = log\nqueue 10\n"
	s.write("ten.sub", jobs)
	s.in("condor_submit -terse ten.sub && condor_wait -wait 300 log")
	for i := range 10 {
		if got := s.content(fmt.Sprintf("out.%d", i)); got != node {
			s.t.Errorf("job %d printed %q, want %s", i, got, node)
		}
	}
}

// request asks for a worker at the node.
func (s *stand) request(mode corral.BrokerMode) (id string) {
	s.t.Helper()
	return s.must("glidein", "create", "--site", "node", "--cluster", "mine", "--cpus", "2", "--memory", "256MiB",
		"--walltime", "10m", "--broker", string(mode), "-q")
}

// A wish is a --broker and what must come of it.
type wish struct {
	mode corral.BrokerMode
	way  corral.BrokerMode // empty: no worker
	say  []string          // in the history, and to those who wait if there is none
}

// TestNamespaces has real pools and nodes with real firewalls between them. Where there is a way, --broker auto finds
// it and jobs run; where there is none, or a wrong one is asked for, the reason is said and no worker is handed over.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	const auto, none, ccb = corral.BrokerAuto, corral.BrokerNone, corral.BrokerCCB
	private := []string{"could not connect to the pool's collector", "(no route)", "relay"}
	tests := []struct {
		topology netns.Topology
		wishes   []wish
	}{
		{netns.OneNet, []wish{{auto, none, []string{"reached this node at"}}}},
		{netns.NodeDrops, []wish{
			{auto, ccb, []string{"timed out; the collector is its broker"}},
			{none, "", []string{"could not connect to this node", "timed out; --broker ccb would work"}},
		}},
		{netns.NodeNAT, []wish{
			{auto, ccb, []string{"could not connect to this node", "the collector is its broker"}},
			{none, "", []string{"could not connect to this node", "--broker ccb would work"}},
		}},
		{netns.PoolNAT, []wish{{auto, "", private}, {ccb, "", private}}},
		{netns.BothNAT, []wish{{auto, "", private}, {ccb, "", private}}},
	}
	for _, tt := range tests {
		t.Run(string(tt.topology), func(t *testing.T) {
			t.Parallel()
			s := newStand(t, tt.topology)
			s.timed("a probe", func() { s.wantProbe(tt.wishes[0]) })
			var ids []string
			s.timed("glideins end, or have their workers", func() {
				for _, w := range tt.wishes {
					ids = append(ids, s.request(w.mode))
				}
				for i, w := range tt.wishes {
					s.wantWish(w, ids[i], s.corral("glidein", "wait", ids[i], "--timeout", "5m"))
				}
			})
			if relay := s.corral("glidein", "create", "--site", "node", "--cluster", "mine", "--broker", "relay"); relay.code != 3 || !strings.Contains(relay.stderr, "no relay") {
				t.Errorf("--broker relay: %+v, want exit code 3 and that there is none", relay)
			}
			if tt.wishes[0].way != "" {
				s.timed("ten jobs", s.tenJobs)
			}
			s.timed("all goes", func() { s.must("down", "--force") })
		})
	}
}

// wantWish checks what became of a glidein, once the wait for its workers has ended.
func (s *stand) wantWish(w wish, id string, wait answer) {
	s.t.Helper()
	said, where := s.must("glidein", "history", id), "the history"
	s.t.Logf("--broker %s: %d\n%s\n%s", w.mode, wait.code, wait.stderr, said)
	g := s.glidein(id)
	slots := s.in("condor_status -constraint 'CorralGlidein == " + id + "' -af MyAddress")
	switch {
	case w.way == "":
		if wait.code != 1 || g.State != corral.GlideinFailed || slots != "" {
			s.t.Errorf("--broker %s: exit code %d, glidein is %s, slots %q, want 1, FAILED and none", w.mode, wait.code, g.State, slots)
		}
		for _, j := range g.Attempts {
			if j.Workers != 0 {
				s.t.Errorf("--broker %s: %d workers were registered, want none", w.mode, j.Workers)
			}
		}
		said, where = wait.stderr, "who waits"
	case wait.code != 0 || g.CPUsNow != 2:
		s.t.Fatalf("--broker %s: exit code %d, %d cpus are registered, want 2", w.mode, wait.code, g.CPUsNow)
	case strings.Contains(slots, "CCBID=") != (w.way == corral.BrokerCCB):
		s.t.Errorf("--broker %s: the worker's address is %s, want %s", w.mode, slots, w.way)
	}
	for _, say := range w.say {
		if !strings.Contains(said, say) {
			s.t.Errorf("--broker %s: %s is told\n%s\nwant %q in it", w.mode, where, said, say)
		}
	}
}

// wantProbe checks what a probe of the site predicts before there is any glidein, given what --broker auto does then.
func (s *stand) wantProbe(auto wish) {
	s.t.Helper()
	code := 0
	if auto.way == "" {
		code = 3
	}
	a := s.corral("site", "probe", "node", "--network", "--cluster", "mine", "-o", "json")
	var all api.Probe
	if err := json.Unmarshal([]byte(a.stdout), &all); err != nil || all.Network == nil {
		s.t.Fatalf("site probe: exit code %d, %q: %v\n%s", a.code, a.stdout, err, a.stderr)
	}
	p := *all.Network
	s.t.Logf("probe: %s\n%s", p, strings.Join(p.Measured, "\n"))
	if a.code != code || p.Broker != auto.way || len(p.Measured) == 0 {
		s.t.Errorf("site probe: exit code %d, %+v, want %d and %q", a.code, p, code, auto.way)
	}
	for _, say := range auto.say {
		if !strings.Contains(p.Reason, say) {
			s.t.Errorf("site probe says %q, want %q in it", p.Reason, say)
		}
	}
	if len(s.files("jobs/corral-probe-*")) > 0 {
		s.t.Errorf("the probe is still at the site")
	}
}

// files returns the files below the root of the site that a pattern names.
func (s *stand) files(pattern string) []string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(read[corral.Site](s.user, "site", "show", "node").Root, pattern))
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}
