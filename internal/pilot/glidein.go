package pilot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/disk"
	"github.com/corral-pilot/corral/internal/node"
	"github.com/corral-pilot/corral/internal/pilot/process"
	"github.com/corral-pilot/corral/pool"
)

const (
	lookGap    = 100 * time.Millisecond  // between two looks at what the daemons wrote, while somebody waits for it
	lookSlow   = 500 * time.Millisecond  // otherwise: hundreds of workers may share a machine
	startMost  = 5 * time.Minute         // for the daemons to ask the pool, on a machine where everything takes long
	joinTime   = time.Minute             // for the pool to take a worker in that asks; HTCondor itself would try for ever
	retellTime = 3 * time.Second         // for them to tell the pool that they take no more jobs, which takes a second
	quitTime   = 1500 * time.Millisecond // for the daemons to end in order, within the supervisor's grace
	updateMost = 10 * time.Second        // between two words of a worker to the collector: this, or a twentieth of its time; so long it is missing in a pool that was started again
	// For each process of the machine, so much of the time goes by between two looks of HTCondor at all of them, which take
	// some 25 µs each: the glideins of a machine full of them would do nothing else.
	measureShare = 40 * time.Millisecond
	retireMost   = 30 * time.Second // before its end a worker takes no more jobs: this, or a tenth of its time
)

// A glidein is a worker of an HTCondor pool: a condor_master, its descendants, and what is known of them. This process
// is their subreaper, so that whatever loses its parent stays ours to end.
type glidein struct {
	lg     *slog.Logger
	out    *process.Speaker
	config condor.GlideinConfig
	log    *condor.GlideinLog
	master int  // process number
	ended  bool // the master has been reaped, with status
	status syscall.WaitStatus

	joinTime time.Duration // for what comes next: that the daemons ask the pool, or that it takes the worker in
	joinBy   time.Time
	asked    bool      // the pool was asked
	joined   time.Time // zero: never yet
	inPool   bool      // as it was when last looked at
	toldAt   time.Time // of the last word on idleness
	draining bool
	drainBy  time.Time // until then it stays to tell the pool so, which would go on matching what it remembers
	leaving  bool
	killAt   time.Time     // what is left then is killed; zero: we do not leave
	fault    *process.Word // why we leave of our own accord
}

// serveCondor joins an HTCondor pool, and returns the worker's last word. When it returns nothing of it runs any more.
func serveCondor(ctx context.Context, lg *slog.Logger, o process.Order, drain <-chan struct{}, out *process.Speaker) process.Word {
	g := &glidein{lg: lg, out: out, config: glideinConfig(o, time.Now())}
	if err := process.AdoptOrphans(); err != nil {
		return process.Word{Left: process.LeftUnable, Error: err.Error()}
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	// What an earlier process of this worker left must not be taken for ours.
	err := disk.RemoveAll(g.config.Dir)
	if err == nil {
		_, err = g.config.Prepare(o.Condor.Secret)
	}
	if err == nil {
		err = g.start()
	}
	switch {
	case errors.Is(err, condor.ErrRoot): // on every node
		return process.Word{Left: string(pool.LeaveRefused), Error: "the pilot runs as root: " + err.Error()}
	case err != nil:
		return process.Word{Left: process.LeftUnable, Error: "starting HTCondor: " + err.Error()}
	}
	defer g.log.Close()
	ticker := time.NewTicker(lookGap)
	defer ticker.Stop()
	stop := ctx.Done()
	for !g.ended {
		select {
		case <-children:
		case <-ticker.C:
		case <-drain:
			drain = nil
			g.drain()
		case <-stop:
			stop = nil
			g.leave(process.Word{Left: string(pool.LeaveAsked)})
		}
		g.step(time.Now())
		ticker.Reset(g.pace())
	}
	process.EndDescendants()
	g.log.Look(time.Now())
	last := g.lastWord(time.Now())
	if last.Error != "" { // the logs are removed; our own is kept
		lg.Warn("HTCondor ended", "error", last.Error, "its last lines", g.log.Last())
	}
	return last
}

// glideinConfig is the worker's offer to the pool.
func glideinConfig(o process.Order, now time.Time) condor.GlideinConfig {
	c, end := o.Condor, now.Add(o.EndsIn)
	self, err := os.Executable()
	if err != nil {
		self = "" // only what jobs could use it for is missing
	}
	return condor.GlideinConfig{
		Dir: filepath.Join(o.Scratch, "condor"), Release: c.Release, Name: machineName(o.ID), Identity: identity(c.Secret),
		Network: condor.GlideinNetwork{Collector: c.Pool, Address: c.Address, Ports: c.Ports, CCB: c.Brokers},
		Cpus:    o.CPUs, MemoryMiB: int64(o.MemoryMiB), Static: c.Static,
		Times: condor.GlideinTimes{
			Retire: end.Add(-min(retireMost, o.EndsIn/10)), End: end,
			Update:  max(2*time.Second, min(updateMost, o.EndsIn/20)),
			Measure: time.Duration(len(process.IDs())) * measureShare,
		},
		RuntimeAttribute: "CorralRuntime", PIDAttribute: "CorralPID",
		Attributes: condor.Ad{
			"CorralCluster": c.Cluster, "CorralSite": c.Site, "CorralGlidein": int64(c.Glidein), "CorralAttempt": int64(c.Attempt),
			"CorralWorker": o.ID, "CorralHost": c.Host, "CorralPilot": strings.TrimSuffix(self, " (deleted)"),
			"CorralLibc": node.Libc(), "CorralSpeed": node.Speed(), "CorralCpus": int64(o.CPUs), "CorralMemoryMiB": int64(o.MemoryMiB),
			"CorralEnd": end.Unix(), "CorralTimeLeft": condor.Expr("CorralEnd - time()"), // for whoever asks, at that time
			"CorralDraining": false,
		},
	}
}

// identity is whom a token makes its bearer, "" if it does not say so in a way that we understand.
func identity(secret string) string {
	token, err := condor.ParseToken(secret)
	if err != nil {
		return ""
	}
	user, domain, _ := strings.Cut(token.Identity, "@")
	return machineName(user) + "@" + domain
}

// machineName makes a worker's id a name that HTCondor takes.
func machineName(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, id)
}

// start starts the master. It quits should this process die: the kernel signals it when the thread that started it
// ends, which the thread of a locked goroutine that never returns does not before the process.
func (g *glidein) start() error {
	cmd, err := g.config.Command()
	if err != nil {
		return err
	}
	printed, err := os.Create(g.errorFile())
	if err != nil {
		return err
	}
	defer printed.Close()
	cmd.Stdout, cmd.Stderr = printed, printed
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- cmd.Start()
		select {}
	}()
	if err := <-started; err != nil {
		return describeStart(cmd, err)
	}
	g.master = cmd.Process.Pid
	_ = cmd.Process.Release() // reap waits for it
	g.log = g.config.Log()
	g.expect(startMost)
	return nil
}

// errorFile is what the daemons print before they have a log: that a library is missing, for example.
func (g *glidein) errorFile() string { return filepath.Join(g.config.Dir, "log", "stderr") }

// describeStart says what the kernel means by a file that is there and is not found.
func describeStart(cmd *exec.Cmd, err error) error {
	if _, there := os.Stat(cmd.Path); there == nil && errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("%w: the loader that it needs is not on this node: the package is for another C library", err)
	}
	return err
}

// expect bounds by most, and by half of the time that is left, how long the next step into the pool may take.
func (g *glidein) expect(most time.Duration) {
	g.joinTime = min(most, time.Until(g.config.Times.End)/2)
	g.joinBy = time.Now().Add(g.joinTime)
}

// pace returns how soon the daemons' words are looked at again.
func (g *glidein) pace() time.Duration {
	if g.inPool && !g.draining && !g.leaving {
		return lookSlow
	}
	return lookGap
}

// step does whatever is due.
func (g *glidein) step(now time.Time) {
	for pid, status := range process.Reap() {
		if pid == g.master {
			g.ended, g.status = true, status
		}
	}
	g.log.Look(now)
	if g.log.Asked && !g.asked {
		g.asked = true
		g.expect(joinTime)
	}
	if g.leaving {
		if now.After(g.killAt) {
			process.KillDescendants()
		}
		return
	}
	switch {
	case g.ended:
	case g.draining && g.log.Reread && !g.log.Busy() && (g.log.Retold || now.After(g.drainBy)):
		g.signal(syscall.SIGTERM) // nothing runs, and nothing will
	case g.log.Ended != "" && !g.endedInOrder():
		g.leave(process.Word{Error: "its condor_startd " + g.log.Ended + g.because()})
	case g.log.Refused != "" && (g.joined.IsZero() || g.log.Refusals > 1):
		g.leave(process.Word{Left: string(pool.LeaveRefused), Error: "the pool refused the token: " + g.log.Refused})
	case g.joined.IsZero() && !g.log.Joined && now.After(g.joinBy):
		g.leave(process.Word{Left: process.LeftUnable, Error: g.unable()})
	default:
		g.tell(now)
	}
}

// unable says why we do not wait for the pool any longer.
func (g *glidein) unable() string {
	within := g.joinTime.Round(time.Second)
	if !g.asked {
		return fmt.Sprintf("HTCondor's daemons did not ask the pool at %s within %s%s", g.config.Network.Collector, within, g.because())
	}
	return fmt.Sprintf("the pool at %s did not take it in within %s%s", g.config.Network.Collector, within, g.because())
}

// tell tells the supervisor what is new about the worker.
func (g *glidein) tell(now time.Time) {
	if g.log.Joined && !g.inPool {
		if g.joined.IsZero() {
			g.joined = now
		}
		_ = g.out.Say(process.Word{Registered: true}) // if the supervisor is gone, obey notices
	}
	g.inPool = g.log.Joined
	if !g.inPool || now.Sub(g.toldAt) < process.WordGap {
		return
	}
	g.toldAt = now
	since := g.joined
	if g.log.Worked.After(since) {
		since = g.log.Worked
	}
	idle := now.Sub(since)
	_ = g.out.Say(process.Word{Idle: &idle})
}

// drain has the daemons take no more jobs, and end after those that run.
func (g *glidein) drain() {
	g.draining, g.drainBy = true, time.Now().Add(retellTime)
	g.config.Draining, g.config.Attributes["CorralDraining"] = true, true
	if err := g.config.Reconfigure(); err != nil {
		g.leave(process.Word{Left: string(pool.LeaveDrained), Error: "drain: " + err.Error()})
		return
	}
	g.signal(syscall.SIGHUP)
}

// leave ends the daemons at once. Jobs go back to the queue.
func (g *glidein) leave(why process.Word) {
	if g.leaving {
		return
	}
	g.leaving, g.fault, g.killAt = true, &why, time.Now().Add(quitTime)
	g.signal(syscall.SIGQUIT)
}

func (g *glidein) signal(s syscall.Signal) {
	if !g.ended { // else the number may be another's by now
		_ = syscall.Kill(g.master, s)
	}
}

// endedInOrder reports whether the startd ended as it should when it is drained or its time is over.
func (g *glidein) endedInOrder() bool {
	return strings.HasSuffix(g.log.Ended, "exited with status 0")
}

// lastWord says why the worker left, once its master has ended.
func (g *glidein) lastWord(now time.Time) process.Word {
	how := process.Ending("condor_master", g.status)
	switch {
	case g.fault != nil:
		return *g.fault
	case g.draining:
		return process.Word{Left: string(pool.LeaveDrained)}
	case g.status.Signaled():
		return process.Word{Error: how}
	case !now.Before(g.config.Times.End.Add(-g.config.Times.Update)) && !g.joined.IsZero():
		return process.Word{Left: string(pool.LeaveExpired)}
	case g.joined.IsZero():
		return process.Word{Left: process.LeftUnable, Error: how + g.because()}
	}
	return process.Word{Error: how + g.because()}
}

// because is the last thing that HTCondor complained of, to be put behind a sentence.
func (g *glidein) because() string {
	if words := g.log.Words(); words != "" {
		return ": " + words
	}
	b, err := os.ReadFile(g.errorFile())
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if words := lines[len(lines)-1]; err == nil && words != "" {
		return ": " + words
	}
	return ""
}
