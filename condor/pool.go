package condor

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// A Pool is a personal pool on this machine. Its daemons are not children of this process: they survive its end, and a
// new Pool with the same configuration finds them, the master by its pid file and the others by their environment,
// which names the pool's configuration. Its methods may be called concurrently.
type Pool struct {
	config PoolConfig
	owner  Account
	tools  Tools

	mu sync.Mutex // held while the daemons are started, stopped or configured
}

// NewPool returns the pool with that configuration, running or not. It changes nothing.
func NewPool(config PoolConfig) (*Pool, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	owner, err := AccountFor(config.RunAs)
	if err != nil {
		return nil, err
	}
	for _, path := range []string{filepath.Dir(config.Dir), config.Release} {
		if err := owner.reaches(path); err != nil {
			return nil, err
		}
	}
	tools := Tools{Release: config.Release, Config: filepath.Join(config.Dir, "condor_config"), As: owner}
	return &Pool{config: config, owner: owner, tools: tools}, nil
}

// Tools returns the commands for this pool, run as its owner.
func (p *Pool) Tools() Tools { return p.tools }

// A Health describes the state of a pool's daemons.
type Health struct {
	Master  int      // process id of its master; 0 if it does not run
	Missing []string // other daemons that the collector does not list; all if it does not answer
}

// OK reports whether all daemons are running.
func (h Health) OK() bool { return h.Master != 0 && len(h.Missing) == 0 }

// adTypes are a pool's daemons, as the MyType of their ads. The master's own ad adds no information, and appears five
// seconds later.
var adTypes = []string{"Collector", "Negotiator", "Scheduler"}

// Health asks the pool's collector which daemons are running. An error means that the state is unknown; a pool that
// does not run is not an error.
func (p *Pool) Health(ctx context.Context) (Health, error) {
	master, ok := p.master()
	if !ok {
		return Health{Missing: adTypes}, nil
	}
	master.close()
	h := Health{Master: master.pid}
	ads, err := p.tools.Query(ctx, "condor_status", []string{"-any"}, []string{"MyType"})
	var refused *Refused
	if err != nil && errors.As(err, &refused) {
		return h, err
	}
	if err := ctx.Err(); err != nil {
		return h, err
	}
	there := map[string]bool{}
	for _, ad := range ads {
		kind, _ := ad.Text("MyType")
		there[kind] = true
	}
	for _, kind := range adTypes {
		if !there[kind] {
			h.Missing = append(h.Missing, kind)
		}
	}
	return h, nil
}

// Start writes the configuration, starts the daemons and returns when the pool accepts jobs. A running pool only reads
// its configuration again. Daemons left by a killed master are ended first. The caller limits the time with ctx; after
// a failure no daemon is left, and the error has the master's words.
func (p *Pool) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.prepare(); err != nil {
		return fmt.Errorf("preparing the pool's folder: %w", err)
	}
	if master, ok := p.master(); ok {
		master.close()
		_, err := p.tools.Run(ctx, nil, "condor_reconfig")
		return wrap.Errorf(err, "configuring the running pool")
	}
	if err := p.killRest(ctx); err != nil {
		return err
	}
	if err := p.launch(ctx); err != nil {
		return err
	}
	var h Health
	err := poll(ctx, func() (ok bool, err error) {
		h, err = p.Health(ctx)
		return h.OK(), err
	})
	if err != nil {
		why := p.lastWords()
		_ = p.killRest(context.WithoutCancel(ctx)) // the error of the start is more useful
		return fmt.Errorf("starting the pool: no %s yet: %w%s", strings.Join(h.Missing, ", "), err, why)
	}
	return nil
}

// prepare creates the files that the daemons require. An existing key and list of revoked tokens are kept, so that the
// glideins' tokens keep their validity.
func (p *Pool) prepare() error {
	for _, name := range []string{"", "log", "spool", "execute", "run", "lock", "keys", "tokens"} {
		if err := p.owner.MakeFolder(filepath.Join(p.config.Dir, name)); err != nil {
			return err
		}
	}
	key := make([]byte, 48)
	_, _ = rand.Read(key) // never fails
	// The key is text, because HTCondor reads a key up to the first NUL.
	if err := p.writeNew(filepath.Join("keys", signingKey), base64.RawURLEncoding.EncodeToString(key)); err != nil {
		return err
	}
	none, err := revoked("", time.Time{}, nil)
	if err != nil {
		return err // unreachable: nothing is revoked
	}
	if err := p.writeNew(revokedFile, none); err != nil {
		return err
	}
	return p.owner.Replace(p.tools.Config, p.config.text(p.owner))
}

// writeNew writes a file of the pool if it does not exist.
func (p *Pool) writeNew(name, text string) error {
	name = filepath.Join(p.config.Dir, name)
	if isFile(name) {
		return nil
	}
	return p.owner.Replace(name, text)
}

func (p *Pool) pidfile() string { return filepath.Join(p.config.Dir, "run", "master.pid") }

// launch starts the master, and returns when the master has moved to the background. The caller checks whether the
// other daemons start.
func (p *Pool) launch(ctx context.Context) error {
	// Checked first, because the shared port would retry forever. Meanwhile the daemons would join the pool that
	// occupies the port.
	free, err := net.Listen("tcp", p.config.Address.String())
	if err != nil {
		return fmt.Errorf("starting the pool: %w", err)
	}
	_ = free.Close()
	if err := os.Remove(p.pidfile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("starting the pool: %w", err)
	}
	_, err = p.tools.Run(ctx, nil, "condor_master", "-pidfile", p.pidfile())
	// On a slow machine the master holds our pipe for longer than Run waits.
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("starting the pool: %w%s", err, p.lastWords())
	}
	return nil
}

// master returns the pool's master if it runs; the caller closes it.
func (p *Pool) master() (process, bool) {
	text, err := os.ReadFile(p.pidfile())
	if err != nil {
		return process{}, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return process{}, false
	}
	return open(pid, func(pid int) bool { return isDaemon(pid, p.tools.Config) })
}

// Stop ends the daemons and returns when none is left. The queue stays in the pool's folder for the next Start, and
// running jobs return to it. Daemons that have not ended with ctx are killed, which the queue also survives. A pool
// that does not run is not an error.
func (p *Pool) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if master, ok := p.master(); ok {
		defer master.close()
		if err := master.signal(unix.SIGQUIT); err != nil { // the fast shutdown: SIGTERM would wait for the jobs
			return fmt.Errorf("stopping the pool: %w", err)
		}
		// If this takes too long, the master is killed below.
		_ = poll(ctx, func() (bool, error) { return master.ended(), nil })
	}
	return p.killRest(context.WithoutCancel(ctx))
}

// killTime is the time in which the kernel ends killed processes; only a process that hangs in a dead file system takes
// longer.
const killTime = 10 * time.Second

// killRest kills every daemon of the pool, starting with the master, which would otherwise restart the others. It
// repeats until none is left, because a daemon may start another one during the search.
func (p *Pool) killRest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	if master, ok := p.master(); ok {
		_ = master.signal(unix.SIGKILL) // if this fails, it is found again below
		master.close()
	}
	left := 0
	err := poll(ctx, func() (bool, error) {
		found := running(p.tools.Config)
		left = len(found)
		var errs []error
		for _, d := range found {
			errs = append(errs, d.signal(unix.SIGKILL))
			d.close()
		}
		return left == 0, errors.Join(errs...)
	})
	return wrap.Errorf(err, "killing the pool's daemons: %d are left", left)
}

// lastWords returns the errors at the end of the logs of the master and of the daemons that it starts first.
func (p *Pool) lastWords() string {
	var s strings.Builder
	for _, name := range []string{"MasterLog", "SharedPortLog", "CollectorLog"} {
		log, err := os.ReadFile(filepath.Join(p.config.Dir, "log", name))
		if err != nil {
			continue
		}
		for line := range bytes.Lines(log[max(0, len(log)-8192):]) {
			if bytes.Contains(line, []byte("ERROR")) || bytes.Contains(line, []byte("ailed")) {
				fmt.Fprintf(&s, "; %s: %s", name, bytes.TrimSpace(line))
			}
		}
	}
	return s.String()
}
