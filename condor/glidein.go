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

// A GlideinConfig describes a glidein's offer to a pool and the time when it leaves. The glidein is a condor_master -f
// with this configuration: it ends after too much idle time or at its end, together with its children.
type GlideinConfig struct {
	Dir     string // its folder on local disk, absolute, for nothing else; created by Prepare
	Release string // HTCondor's folder, absolute, not newer than the pool's: an older pool cannot match newer workers

	Name     string // of the machine in the pool; must be unique
	Identity string // USER@DOMAIN of its token, included in the names of its ads; "": unknown
	Network  GlideinNetwork

	Cpus      int
	MemoryMiB int64
	GPUs      []string // names as in CUDA_VISIBLE_DEVICES; none: those that HTCondor detects
	Static    bool     // one slot per cpu, instead of one that is divided as jobs require

	Times GlideinTimes
	// RuntimeAttribute names the attribute in which a job states its runtime in seconds. A job whose runtime, divided
	// by Speed, exceeds the time until Times.End is not accepted. A job without it, or any job if it is "", is accepted
	// until Times.Retire.
	RuntimeAttribute string
	Speed            float64    // of this machine, compared with the one to which runtimes refer; 0: 1
	PIDAttribute     string     // attribute with its master's process id; "": omitted
	Attributes       classad.Ad // further attributes of its ads

	// Fetch is a command that acts as a plugin of HTCondor's file transfer; HTCondor's arguments follow its own.
	// Without it, URL inputs need plugins of the release.
	Fetch []string

	// Draining is set, with Reconfigure, when the glidein must accept no more jobs. The caller ends the glidein when
	// [GlideinLog] shows that the startd has read this, is not busy, and has updated its ad in the pool, which would
	// otherwise match the old ad.
	Draining bool
}

// A GlideinNetwork describes how a glidein and its pool reach each other.
type GlideinNetwork struct {
	Collector netip.AddrPort // the pool
	Address   netip.Addr     // of this machine, for connections from the pool's schedd
	Ports     [2]uint16      // lowest and highest listening port, from 1024 on; zero: any
	CCB       []string       // HOST:PORT of brokers for connections to it; none: directly
}

// GlideinTimes state when a glidein leaves, and the intervals of its periodic actions.
type GlideinTimes struct {
	Idle time.Duration // leave after this time without a claim; 0: never
	// Retire is when it accepts its last job, and End when it leaves, even if jobs run. HTCondor checks the clock once
	// per Update.
	Retire, End time.Time
	// Update is the interval of its updates to the pool, varied by a third so that thousands of glideins started
	// together do not send at the same time.
	Update time.Duration
	// Measure is the pause between two measurements of a job's usage, at least [MeasureLeast]. Each measurement reads
	// all processes of the machine.
	Measure time.Duration
}

// MeasureLeast is how soon excessive memory use of a job is noticed on a machine with few processes.
const MeasureLeast = 5 * time.Second

// TookMemory is part of the hold reason of a job that exceeded its slot's memory, as in glidein.conf.
const TookMemory = "the job took more memory than it had asked for"

// RunnerAttribute of a job's ad is the memory in MiB, up to 64, that its program uses in addition to the program that
// it runs. This memory is not counted as used.
const RunnerAttribute = "RunnerMemory"

//go:embed glidein.conf
var glideinConf string

// machineName matches names that are valid both to HTCondor and as domain names.
var machineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// check rejects values that the daemons could not use, or that could be parsed as more than a value: configuration
// files expand macros, and the names come from requests.
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
		return errors.New("a glidein needs its own address and that of a pool")
	case c.Network.Ports != [2]uint16{} && (c.Network.Ports[0] < 1024 || c.Network.Ports[0] > c.Network.Ports[1]):
		return fmt.Errorf("a user cannot listen at ports from %d to %d", c.Network.Ports[0], c.Network.Ports[1])
	case c.Cpus <= 0 || c.MemoryMiB <= 0:
		return errors.New("a glidein needs cpus and memory")
	case c.Times.Update < time.Second:
		return errors.New("the update interval of a glidein is below a second")
	case c.Times.End.IsZero() || c.Times.Retire.After(c.Times.End):
		return errors.New("a glidein must not retire after its end")
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

// text returns the glidein's configuration: its individual settings, followed by glidein.conf, which all glideins share
// and which explains each setting.
func (c GlideinConfig) text() (string, error) {
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
		// It would mistake the pool's collector, or that collector's proxy on this machine, for a daemon of its own
		// family, which refuses it.
		set("SEC_USE_FAMILY_SESSION", "False")
	}
	c.slots(set)
	c.times(set)
	c.advertise(set)
	s.WriteString("\n" + glideinConf)
	return s.String(), nil
}

// daemonName is the name of its ads in the pool; those of slots are preceded by the slot. Corral's pools accept an ad
// only if its name ends with the user of the sender's token, so that no sender can overwrite another's ad.
func (c GlideinConfig) daemonName() string {
	if c.Identity == "" {
		return c.Name
	}
	return c.Name + "@" + c.user()
}

// user is the part of the identity with which daemons' names end.
func (c GlideinConfig) user() string {
	user, _, _ := strings.Cut(c.Identity, "@")
	return user
}

// How long a collector keeps an ad. A startd on a busy machine may be late, and Corral's pools keep no ad for longer.
const forgetLeast, forgetMost = 20 * time.Second, 900 * time.Second

// A setter writes one line of configuration.
type setter func(key, format string, args ...any)

// slots configures one slot that is divided as jobs require, or one slot per processor.
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

// times states when the glidein accepts jobs and when it leaves, as expressions that the startd evaluates itself: it
// leaves in time even if its pool, pilot or network is gone.
func (c GlideinConfig) times(set setter) {
	set("GLIDEIN_END", "%d", c.Times.End.Unix())
	start := fmt.Sprintf("time() < %d", c.Times.Retire.Unix())
	if c.RuntimeAttribute != "" {
		runtime := "TARGET." + c.RuntimeAttribute
		if c.Speed > 0 && c.Speed != 1 {
			runtime += fmt.Sprintf(" / %g", c.Speed)
		}
		start += fmt.Sprintf(" && time() + ifThenElse(isUndefined(TARGET.%s), 0, %s) <= %d", c.RuntimeAttribute,
			runtime, c.Times.End.Unix())
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
	// A collector that does not accept withdrawals of ads drops them by age: not before two updates were missed.
	set("ClassAdLifetime", "%d", int64(min(max(forgetLeast, 3*c.Times.Update), forgetMost)/time.Second))
	set("MEASURE", "%d", int64(max(MeasureLeast, c.Times.Measure)/time.Second))
}

// advertise configures the attributes of the glidein's ads, and disables features whose programs this release lacks.
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
	// A startd exits if the program that finds GPUs is missing. A starter without plugins crashes if their list is
	// empty, but not if URL transfers are disabled.
	if len(c.GPUs) > 0 {
		// The batch system gave this job fewer GPUs than HTCondor would find on the machine.
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

// openssh is the folder of OpenSSH's programs in the release of a worker package.
const openssh = "libexec/openssh"

// sshToJob configures the release's sshd for logins to a running job instead of the machine's, which a worker may lack.
// Since OpenSSH 9.8, sshd consists of several programs, each of which needs the path of the next one.
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

// Prepare creates the folder, private to its user, with the configuration and the token's text in it, and returns the
// file for CONDOR_CONFIG. Release must exist already.
func (c GlideinConfig) Prepare(secret string) (config string, err error) {
	text, err := c.text()
	if err != nil {
		return "", err
	}
	for _, name := range []string{"", "log", "spool", "execute", "lock", "tokens"} {
		if err := self().MakeFolder(filepath.Join(c.Dir, name)); err != nil {
			return "", fmt.Errorf("preparing a glidein: %w", err)
		}
	}
	if err := errors.Join(self().Replace(c.config(), text), c.renew(secret), c.writeFetch()); err != nil {
		return "", fmt.Errorf("preparing a glidein: %w", err)
	}
	return c.config(), nil
}

// fetchScript is a file in a glidein's folder, needed because a plugin cannot have arguments of its own.
const fetchScript = "fetch"

// writeFetch writes the program that runs Fetch.
func (c GlideinConfig) writeFetch() error {
	if len(c.Fetch) == 0 {
		return nil
	}
	script := "#!/bin/sh\nexec " + shell.Line(c.Fetch) + " \"$@\"\n"
	name := filepath.Join(c.Dir, fetchScript)
	return errors.Join(self().Replace(name, script), os.Chmod(name, 0o700))
}

func (c GlideinConfig) config() string { return filepath.Join(c.Dir, "condor_config") }

// Command returns a command that starts the prepared glidein: its master, in a session of its own, as the user of this
// process.
func (c GlideinConfig) Command() (*exec.Cmd, error) {
	me, err := AccountFor("")
	if err != nil {
		return nil, err
	}
	tools := Tools{Release: c.Release, Config: c.config(), As: me}
	return tools.command(context.Background(), "condor_master", "-f"), nil
}

// Reconfigure writes the configuration again. On SIGHUP the master reads it and makes its daemons read it.
func (c GlideinConfig) Reconfigure() error {
	text, err := c.text()
	if err == nil {
		err = self().Replace(c.config(), text)
	}
	return err
}

// renew writes the glidein's token, which is used for sessions opened from then on.
func (c GlideinConfig) renew(secret string) error {
	return self().Replace(filepath.Join(c.Dir, "tokens", "pool"), secret+"\n")
}
