package condor

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/internal/kit/shell"
)

// A GlideinConfig says what a glidein offers to a pool and when it leaves. A condor_master -f with the configuration
// made of it is the glidein: it ends when idle for too long or at its end, with what it started.
type GlideinConfig struct {
	Dir     string // its folder on local disk, absolute, for nothing else; Prepare makes it
	Release string // HTCondor's folder, absolute, not newer than the pool's: an older pool matches no newer worker

	Name     string // of the machine in the pool; no two may have the same
	Identity string // who its token makes it, USER@DOMAIN: its ads have the user in their names. "": not known
	Network  GlideinNetwork

	Cpus      int
	MemoryMiB int64
	GPUs      []string // by the names that CUDA_VISIBLE_DEVICES takes; none: those that HTCondor finds itself
	Static    bool     // as many slots as Cpus, instead of one that is divided as jobs need

	Times GlideinTimes
	// RuntimeAttribute names the attribute in which a job says how many seconds it needs. A job that needs longer than
	// there is until Times.End is not taken. "" or a job without it: taken until Times.Retire.
	RuntimeAttribute string
	PIDAttribute     string     // in which it says its master's process number; "": not said
	Attributes       classad.Ad // what else it says of itself

	// Fetch is a command that acts as a plugin of HTCondor's file transfer, with HTCondor's arguments behind its own;
	// none: inputs that are URLs are for others, unless the release has plugins.
	Fetch []string

	// Draining is set, with Reconfigure, when it is to take no more jobs. Whoever has started it ends it when
	// [GlideinLog] says that the startd has read this, has told the pool, which would go on matching what it remembers,
	// and is not busy.
	Draining bool
}

// A GlideinNetwork says how a glidein and its pool reach each other.
type GlideinNetwork struct {
	Collector netip.AddrPort // the pool
	Address   netip.Addr     // of this machine, where the pool's schedd may reach it
	Ports     [2]uint16      // the lowest and the highest at which it listens, from 1024 on; zero: any
	CCB       []string       // HOST:PORT of brokers through which it is reached; none: directly
}

// GlideinTimes say when a glidein leaves, and how often it does what it does again and again.
type GlideinTimes struct {
	Idle time.Duration // leave after so long without a claim; 0: never
	// Retire is when it takes its last job, and End when it leaves, whatever runs. HTCondor looks at
	// the clock once in Update.
	Retire, End time.Time
	// Update is how often it says that it is there, a third more or less, so that thousands which started
	// together do not speak together.
	Update time.Duration
	// Measure is how long after one look at what a job takes the next one is due, at least [MeasureLeast]. Each look
	// reads all processes of the machine.
	Measure time.Duration
}

// MeasureLeast is how soon a job is noticed that takes more memory than it asked for, on a machine with few processes.
const MeasureLeast = 5 * time.Second

// TookMemory is in the reason of a hold when a job took more memory than its slot has, as glidein.conf says it.
const TookMemory = "the job took more memory than it had asked for"

// RunnerAttribute of a job's ad is the memory in MiB that its program takes beside what it runs, and that is not
// counted as taken, up to 64.
const RunnerAttribute = "RunnerMemory"

//go:embed glidein.conf
var glideinConf string

// machineName is what HTCondor and a domain's name both take.
var machineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// check refuses what the daemons could not use, or what could be read as more than a value: a configuration file is
// macros, and the names come from requests.
func (c GlideinConfig) check() error {
	if err := checkFolders(c.Dir, c.Release); err != nil {
		return err
	}
	switch {
	case !machineName.MatchString(c.Name):
		return fmt.Errorf("%q cannot be the name of a machine", c.Name)
	case c.Identity != "" && !machineName.MatchString(c.user()):
		return fmt.Errorf("%q cannot be a user in a daemon's name", c.Identity)
	case !c.Network.Address.IsValid() || !c.Network.Collector.IsValid():
		return errors.New("a glidein without an address, or without a pool's")
	case c.Network.Ports != [2]uint16{} && (c.Network.Ports[0] < 1024 || c.Network.Ports[0] > c.Network.Ports[1]):
		return fmt.Errorf("a user may not listen at ports from %d to %d", c.Network.Ports[0], c.Network.Ports[1])
	case c.Cpus <= 0 || c.MemoryMiB <= 0:
		return errors.New("a glidein without cpus or memory")
	case c.Times.Update < time.Second:
		return errors.New("a glidein that would update its ad all the time")
	case c.Times.End.IsZero() || c.Times.Retire.After(c.Times.End):
		return errors.New("a glidein that retires after its end")
	}
	names := slices.AppendSeq([]string{c.RuntimeAttribute, c.PIDAttribute}, maps.Keys(c.Attributes))
	for _, text := range names {
		if text != "" && !attributeName.MatchString(text) {
			return fmt.Errorf("%q cannot be the name of an attribute", text)
		}
	}
	for _, gpu := range c.GPUs {
		if !machineName.MatchString(gpu) {
			return fmt.Errorf("%q cannot be the name of a GPU", gpu)
		}
	}
	for _, broker := range c.Network.CCB {
		if strings.ContainsAny(broker, " \t\r\n,$") {
			return fmt.Errorf("%q cannot be the address of a broker", broker)
		}
	}
	return nil
}

// Text is the glidein's configuration: what differs from glidein to glidein, and then glidein.conf, which all have in
// common and which says why each setting is there.
func (c GlideinConfig) Text() (string, error) {
	if err := c.check(); err != nil {
		return "", fmt.Errorf("configuring a glidein: %w", err)
	}
	var s strings.Builder
	set := func(key, format string, args ...any) { fmt.Fprintf(&s, key+" = "+format+"\n", args...) }
	set("RELEASE_DIR", "%s", c.Release)
	set("LOCAL_DIR", "%s", c.Dir)
	set("GLIDEIN_NAME", "%s", c.Name)
	set("MASTER_NAME", "%s", c.daemonName())
	set("STARTD_NAME", "%s", c.daemonName())
	set("DEFAULT_DOMAIN_NAME", "%s.glidein", c.Name)
	set("TRUST_DOMAIN", "%s", domain)
	set("CONDOR_HOST", "%s", c.Network.Collector.Addr())
	set("COLLECTOR_HOST", "%s", c.Network.Collector)
	set("NETWORK_INTERFACE", "%s", c.Network.Address)
	if len(c.Network.CCB) > 0 {
		set("CCB_ADDRESS", "%s", strings.Join(c.Network.CCB, ", "))
	}
	if c.Network.Ports != [2]uint16{} {
		set("IN_LOWPORT", "%d", c.Network.Ports[0])
		set("IN_HIGHPORT", "%d", c.Network.Ports[1])
	}
	if c.Network.Address == c.Network.Collector.Addr() || c.Network.Collector.Addr().IsLoopback() {
		// It would take the pool's collector, or what stands for it on this machine, for a daemon of its own family,
		// which refuses it.
		set("SEC_USE_FAMILY_SESSION", "False")
	}
	c.slots(set)
	c.times(set)
	c.advertise(set)
	s.WriteString("\n" + glideinConf)
	return s.String(), nil
}

// daemonName is what its ads are called in the pool; those of slots have the slot before it. A pool of ours takes an
// ad only if its name ends with the user of its sender's token: then no sender can overwrite another's ad.
func (c GlideinConfig) daemonName() string {
	if c.Identity == "" {
		return c.Name
	}
	return c.Name + "@" + c.user()
}

// user is the part of the identity that daemons' names end with.
func (c GlideinConfig) user() string {
	user, _, _ := strings.Cut(c.Identity, "@")
	return user
}

// How long a collector keeps an ad: a startd on a busy machine may be late, and a pool of ours takes none for longer.
const forgetLeast, forgetMost = 20 * time.Second, 900 * time.Second

// A setter writes one line of configuration.
type setter func(key, format string, args ...any)

// slots are one slot that is divided as jobs need, or one for each processor.
func (c GlideinConfig) slots(set setter) {
	set("NUM_CPUS", "%d", c.Cpus)
	set("MEMORY", "%d", c.MemoryMiB)
	if c.Static {
		set("SLOT_TYPE_1", "cpus=1")
		set("NUM_SLOTS_TYPE_1", "%d", c.Cpus)
		set("SLOT_TYPE_1_PARTITIONABLE", "False")
		return
	}
	set("SLOT_TYPE_1", "100%%")
	set("NUM_SLOTS_TYPE_1", "1")
	set("SLOT_TYPE_1_PARTITIONABLE", "True")
}

// times say when the glidein takes jobs and when it leaves, as expressions that the startd evaluates itself: a glidein
// whose pool, pilot or network is gone leaves in time all the same.
func (c GlideinConfig) times(set setter) {
	set("GLIDEIN_END", "%d", c.Times.End.Unix())
	start := fmt.Sprintf("time() < %d", c.Times.Retire.Unix())
	if c.RuntimeAttribute != "" {
		start += fmt.Sprintf(" && time() + ifThenElse(isUndefined(TARGET.%s), 0, TARGET.%[1]s) <= %d",
			c.RuntimeAttribute, c.Times.End.Unix())
	}
	if c.Draining {
		// A claim whose job has ended is given up when START is false, whatever the schedd has in its queue.
		start = "False"
	}
	set("START", "%s", start)
	if c.Times.Idle > 0 && !c.Draining {
		set("STARTD_NOCLAIM_SHUTDOWN", "%d", max(1, int64(c.Times.Idle/time.Second)))
	}
	seconds := int64(c.Times.Update / time.Second)
	interval := fmt.Sprintf("$RANDOM_INTEGER(%d, %d)", max(1, seconds*2/3), max(1, seconds*4/3))
	set("UPDATE_INTERVAL", "%s", interval)
	set("MASTER_UPDATE_INTERVAL", "%s", interval)
	// A collector that does not let ads be taken back forgets them by age: not before two updates were missed.
	set("ClassAdLifetime", "%d", int64(min(max(forgetLeast, 3*c.Times.Update), forgetMost)/time.Second))
	set("MEASURE", "%d", int64(max(MeasureLeast, c.Times.Measure)/time.Second))
}

// advertise says what the glidein says of itself, and leaves out what this release has no program for.
func (c GlideinConfig) advertise(set setter) {
	names := []string{"GLIDEIN_END", "ClassAdLifetime"}
	for _, name := range slices.Sorted(maps.Keys(c.Attributes)) {
		set(name, "%s", strings.ReplaceAll(classad.FormatOld(c.Attributes[name]), "$", "$(DOLLAR)"))
		names = append(names, name)
	}
	if c.PIDAttribute != "" {
		set(c.PIDAttribute, "$(PPID)")
		set("MASTER."+c.PIDAttribute, "$(PID)")
		names = append(names, c.PIDAttribute)
	}
	set("STARTD_ATTRS", "%s", strings.Join(names, ", "))
	set("MASTER_ATTRS", "%s", strings.Join(names, ", "))
	// A startd exits when the program that finds GPUs is not there; a starter without plugins crashes when
	// their list is empty, and is fine when there is to be none.
	if len(c.GPUs) > 0 {
		// What the batch system gave to this job is less than what HTCondor would find on the machine.
		set("MACHINE_RESOURCE_INVENTORY_GPUs", "")
		set("MACHINE_RESOURCE_GPUs", "%s", strings.Join(c.GPUs, ", "))
	} else if !isFile(filepath.Join(c.Release, "libexec/condor/condor_gpu_discovery")) {
		set("MACHINE_RESOURCE_INVENTORY_GPUs", "")
	}
	if isFile(filepath.Join(c.Release, openssh, "sshd")) {
		c.sshToJob(set)
	}
	if len(c.Fetch) > 0 {
		set("FILETRANSFER_PLUGINS", "$(LOCAL_DIR)/%s", fetchScript)
	} else if !isFile(filepath.Join(c.Release, "libexec/condor/curl_plugin")) {
		set("ENABLE_URL_TRANSFERS", "False")
	}
}

// openssh is where a release of a worker package has programs of OpenSSH.
const openssh = "libexec/openssh"

// sshToJob has the sshd of the release beside a job that somebody wants to look at, and not the machine's, which a
// worker may lack. Since OpenSSH 9.8 a sshd is several programs, each of which is told where the next one is.
func (c GlideinConfig) sshToJob(set setter) {
	set("SSH_TO_JOB_SSHD", "$(RELEASE_DIR)/%s/sshd", openssh)
	set("SSH_TO_JOB_SSH_KEYGEN", "$(RELEASE_DIR)/%s/ssh-keygen", openssh)
	set("SSH_TO_JOB_SSHD_CONFIG_TEMPLATE", "$(LIB)/condor_ssh_to_job_sshd_config_template")
	args := "-i -e -f %f"
	for _, part := range [][2]string{{"SshdSessionPath", "sshd-session"}, {"SshdAuthPath", "sshd-auth"}} {
		if file := filepath.Join(c.Release, openssh, part[1]); isFile(file) {
			args += " -o " + Word(part[0]+"="+file)
		}
	}
	set("SSH_TO_JOB_SSHD_ARGS", "%s", Words(args))
}

// Prepare makes the folder, closed to others, with the configuration and the token's text in it, and returns the file
// that CONDOR_CONFIG has to name. Release must be there already.
func (c GlideinConfig) Prepare(secret string) (config string, err error) {
	text, err := c.Text()
	if err != nil {
		return "", err
	}
	for _, name := range []string{"", "log", "spool", "execute", "lock", "tokens"} {
		if err := self().MakeFolder(filepath.Join(c.Dir, name)); err != nil {
			return "", fmt.Errorf("preparing a glidein: %w", err)
		}
	}
	if err := errors.Join(self().Replace(c.config(), text), c.Renew(secret), c.writeFetch()); err != nil {
		return "", fmt.Errorf("preparing a glidein: %w", err)
	}
	return c.config(), nil
}

// fetchScript is a file in a glidein's folder: a plugin is a program without arguments of its own.
const fetchScript = "fetch"

// writeFetch writes the program that Fetch stands for.
func (c GlideinConfig) writeFetch() error {
	if len(c.Fetch) == 0 {
		return nil
	}
	script := "#!/bin/sh\nexec " + shell.Line(c.Fetch) + " \"$@\"\n"
	name := filepath.Join(c.Dir, fetchScript)
	return errors.Join(self().Replace(name, script), os.Chmod(name, 0o700))
}

func (c GlideinConfig) config() string { return filepath.Join(c.Dir, "condor_config") }

// Command returns the glidein, which was prepared, as a command to be started: its master, in a session of its own, as
// the user of this process.
func (c GlideinConfig) Command() (*exec.Cmd, error) {
	me, err := AccountFor("")
	if err != nil {
		return nil, err
	}
	tools := Tools{Release: c.Release, Config: c.config(), As: me}
	return tools.command(context.Background(), "condor_master", "-f"), nil
}

// Reconfigure writes the configuration again. The master reads it when it gets SIGHUP, and has its daemons read it.
func (c GlideinConfig) Reconfigure() error {
	text, err := c.Text()
	if err == nil {
		err = self().Replace(c.config(), text)
	}
	return err
}

// Renew replaces the glidein's token. It is used for sessions that are opened from then on.
func (c GlideinConfig) Renew(secret string) error {
	return self().Replace(filepath.Join(c.Dir, "tokens", "pool"), secret+"\n")
}
