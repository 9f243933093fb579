//go:build sites

package condor

import (
	"context"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/condor/eventlog"
)

// glidein is a glidein for the pool, which lasts as long as the test.
func glidein(t *testing.T, p *Pool, name string) GlideinConfig {
	t.Helper()
	now := time.Now()
	return GlideinConfig{
		Dir: filepath.Join(folder(t), "glidein"), Release: release, Name: name, Identity: GlideinIdentity(1),
		Network: GlideinNetwork{Collector: p.config.Address, Address: p.config.Address.Addr()},
		Cpus:    2, MemoryMiB: 200,
		Times:            GlideinTimes{Idle: time.Hour, Retire: now.Add(time.Hour), End: now.Add(time.Hour), Update: 2 * time.Second},
		RuntimeAttribute: "ExpectedRuntime", Attributes: classad.Ad{"GlideinAttempt": `a "7" $(x)`},
	}
}

// start runs a glidein as the pool's user; the returned channel receives the end of its master.
func start(t *testing.T, p *Pool, c GlideinConfig, secret string) (*exec.Cmd, <-chan error) {
	t.Helper()
	config, err := c.Prepare(secret)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(c.Dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return p.owner.give(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	tools := Tools{Release: release, Config: config, As: p.owner}
	ctx, kill := context.WithCancel(context.Background())
	cmd := tools.command(ctx, "condor_master", "-f")
	if err := cmd.Start(); err != nil {
		kill()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		ended <- cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
		time.AfterFunc(time.Minute, kill)
		<-done
		eventually(t, "end of the daemons", func() (bool, error) {
			left := running(config)
			for _, d := range left {
				d.close()
			}
			return len(left) == 0, nil
		})
	})
	return cmd, ended
}

// machine returns the ads of a glidein's slots.
func machine(t *testing.T, p *Pool, name string) []classad.Ad {
	t.Helper()
	ads, err := p.Tools().Query(soon(t), "condor_status", []string{"-constraint", "Machine == " + classad.FormatNew(name) + " || GLIDEIN_NAME == " + classad.FormatNew(name) +
		" || regexp(" + classad.FormatNew("@"+name) + ", Name)"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ads
}

func TestGlideinRunsJobsThatFit(t *testing.T) {
	t.Parallel()
	p := startPool(t)
	c := glidein(t, p, "fits")
	c.Speed = 0.5
	from := time.Now()
	cmd, ended := start(t, p, c, mint(t, p, time.Hour).Secret())
	var ads []classad.Ad
	eventually(t, "the glidein's ad", func() (bool, error) {
		ads = machine(t, p, "fits")
		return len(ads) > 0, nil
	})
	t.Logf("in the pool after %v", time.Since(from).Round(time.Millisecond))
	attempt, _ := ads[0].Text("GlideinAttempt")
	cpus, _ := ads[0].Int("Cpus")
	memory, _ := ads[0].Int("Memory")
	end, _ := ads[0].Int("GLIDEIN_END")
	if len(ads) != 1 || attempt != `a "7" $(x)` || cpus != 2 || memory != 200 || end != c.Times.End.Unix() {
		t.Errorf("%d slots; attempt %q, %d cpus, %d MiB, end %d", len(ads), attempt, cpus, memory, end)
	}
	long, short := sh(p, "long", "exit 0"), sh(p, "short", "cat in; echo \"$0\" >new")
	long.Attributes = classad.Ad{"ExpectedRuntime": 2700} // 90 minutes at this speed
	if err := os.WriteFile(filepath.Join(p.config.Dir, "in"), []byte("sent along"), 0o644); err != nil {
		t.Fatal(err)
	}
	short.Transfer = Transfer{When: "YES", Input: []string{"in"}}
	short.Request.Cpus, short.Attributes = 2, classad.Ad{"ExpectedRuntime": 5}
	tooLong, err := p.Tools().Submit(soon(t), long)
	if err != nil {
		t.Fatal(err)
	}
	from = time.Now()
	if err := submit(t, p, short); err != nil {
		t.Fatal(err)
	}
	log := eventlog.File{Path: filepath.Join(p.config.Dir, "jobs.log")}
	eventually(t, "end of the short job", func() (bool, error) {
		for event := range log.New(time.Now()) {
			if _, ok := event.Detail.(eventlog.Terminated); ok {
				return true, nil
			}
		}
		return false, nil
	})
	t.Logf("a job took %v", time.Since(from).Round(time.Millisecond))
	for name, want := range map[string]string{"short.out": "sent along", "new": "/bin/sh\n"} {
		if got, err := os.ReadFile(filepath.Join(p.config.Dir, name)); err != nil || string(got) != want {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
	if idle(t, p, tooLong) != 1 {
		t.Error("a job that needs longer than the glidein lives was started")
	}
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	<-ended
}

func TestGlideinLeavesByItself(t *testing.T) {
	t.Parallel()
	p := common(t)
	atEnd, idle := glidein(t, p, "ends"), glidein(t, p, "idles")
	atEnd.MemoryMiB, idle.MemoryMiB = 2, 1 // too little for other tests' jobs
	atEnd.Times = GlideinTimes{Retire: time.Now(), End: time.Now().Add(4 * time.Second), Update: time.Second}
	atEnd.Static = true
	idle.Times.Idle = 3 * time.Second
	_, endOfFirst := start(t, p, atEnd, mint(t, p, time.Hour).Secret())
	_, endOfSecond := start(t, p, idle, mint(t, p, time.Hour).Secret())
	for what, ended := range map[string]<-chan error{"at its end": endOfFirst, "idle": endOfSecond} {
		select {
		case <-ended:
		case <-soon(t).Done():
			t.Errorf("a glidein that is %s does not leave", what)
		}
	}
}

func TestGlideinConfigRefuses(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	good := glidein(t, p, "good")
	text, err := good.text()
	if err != nil || !strings.Contains(text, "SEC_USE_FAMILY_SESSION = False") {
		t.Errorf("on the pool's own address: %v\n%s", err, text)
	}
	elsewhere := good
	elsewhere.Network = GlideinNetwork{
		Collector: netip.MustParseAddrPort("192.0.2.3:9618"), Address: netip.MustParseAddr("192.0.2.1"),
		Ports: [2]uint16{40000, 40100}, CCB: []string{"192.0.2.2:9618"},
	}
	text, err = elsewhere.text()
	if err != nil || strings.Contains(text, "SEC_USE_FAMILY_SESSION") || !slices.Contains(strings.Split(text, "\n"), "CCB_ADDRESS = 192.0.2.2:9618") {
		t.Errorf("elsewhere: %v\n%s", err, text)
	}
	if !strings.Contains(text, "\nIN_LOWPORT = 40000\nIN_HIGHPORT = 40100\n") {
		t.Errorf("its ports are not in it:\n%s", text)
	}
	for name, change := range map[string]func(c *GlideinConfig){
		"ports":               func(c *GlideinConfig) { c.Network.Ports = [2]uint16{40100, 40000} },
		"ports of services":   func(c *GlideinConfig) { c.Network.Ports = [2]uint16{80, 2000} },
		"macro in the folder": func(c *GlideinConfig) { c.Dir += "$(x)" },
		"name of two words":   func(c *GlideinConfig) { c.Name = "a b" },
		"strange identity":    func(c *GlideinConfig) { c.Identity = "a b@x" },
		"no address":          func(c *GlideinConfig) { c.Network.Address = netip.Addr{} },
		"no cpus":             func(c *GlideinConfig) { c.Cpus = 0 },
		"no update":           func(c *GlideinConfig) { c.Times.Update = 0 },
		"no end":              func(c *GlideinConfig) { c.Times.End = time.Time{} },
		"late retirement":     func(c *GlideinConfig) { c.Times.Retire = c.Times.End.Add(1) },
		"attribute":           func(c *GlideinConfig) { c.Attributes = classad.Ad{"A = 1\nSTART": true} },
		"runtime":             func(c *GlideinConfig) { c.RuntimeAttribute = "A || true" },
		"broker":              func(c *GlideinConfig) { c.Network.CCB = []string{"a\nb"} },
	} {
		c := good
		change(&c)
		if text, err := c.text(); err == nil {
			t.Errorf("%s: text() = %q, want an error", name, text)
		}
	}
}

func TestGlideinConfigWhileDraining(t *testing.T) {
	t.Parallel()
	c := glidein(t, newPool(t), "drains")
	c.PIDAttribute, c.Draining = "GlideinPID", true
	if _, err := c.Prepare("secret"); err != nil {
		t.Fatal(err)
	}
	c.Cpus = 7
	if err := c.Reconfigure(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(c.Dir, "condor_config"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, want := range []string{"START = False", "NUM_CPUS = 7", "GlideinPID = $(PPID)", "MASTER.GlideinPID = $(PID)"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
}
