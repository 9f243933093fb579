package submission

import (
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// An option is an option of sbatch. Exactly one of set, ignored and refused defines its effect.
type option struct {
	notation.Option
	env     string                       // variables that contain its value: SBATCH_…, separated by blanks
	set     func(*draft, string) error   // stores its value
	ignored string                       // why the option has no effect
	refused string                       // why the option, which would change the result for the user, is not supported
	unless  func(value string) (ok bool) // reports whether a value of a refused option is harmless
}

// Reasons shared by several options.
const (
	oneWorker = "a job runs within one worker"
	anyWorker = "a job runs on any worker that it fits on"
	noLayout  = "Corral does not bind tasks to sockets and cores"
	noPower   = "Corral does not set frequencies or power limits"
	noMail    = "no mail is sent"
	noOther   = "there is one cluster"
)

// need returns an option with an argument, flag an option without an argument, and maybe an option with an optional
// argument.
func need(long string, short byte, o option) option { return with(long, short, notation.Required, o) }
func flag(long string, short byte, o option) option { return with(long, short, notation.NoArgument, o) }
func maybe(long string, o option) option            { return with(long, 0, notation.Optional, o) }

func with(long string, short byte, a notation.Argument, o option) option {
	o.Option = notation.Option{Long: long, Short: short, Argument: a}
	return o
}

// options lists every option of sbatch 22.05, in sbatch's own order.
var options = []option{
	need("account", 'A', option{env: "SBATCH_ACCOUNT", set: text(func(d *draft) *string { return &d.Labels.Account })}),
	need("acctg-freq", 0, option{env: "SBATCH_ACCTG_FREQ", ignored: "workers choose their own measuring interval"}),
	need("array", 'a', option{env: "SBATCH_ARRAY_INX", set: (*draft).array}),
	need("batch", 0, option{refused: anyWorker}),
	need("begin", 'b', option{refused: "a job starts as soon as a worker is free",
		unless: func(v string) bool { return v == "now" }}),
	need("bb", 0, option{env: "SBATCH_BURST_BUFFER", refused: "there are no burst buffers"}),
	need("bbf", 0, option{refused: "there are no burst buffers"}),
	need("cluster-constraint", 0, option{refused: noOther}),
	need("chdir", 'D', option{set: text(func(d *draft) *string { return &d.Directory })}),
	need("cluster", 0, option{set: text(func(d *draft) *string { return &d.Placing.Clusters })}),
	need("clusters", 'M', option{env: "SBATCH_CLUSTERS SLURM_CLUSTERS",
		set: text(func(d *draft) *string { return &d.Placing.Clusters })}),
	need("comment", 0, option{set: text(func(d *draft) *string { return &d.Labels.Comment })}),
	need("container", 0, option{env: "SBATCH_CONTAINER", refused: "the script can start its container itself"}),
	need("context", 0, option{refused: "a job has the security context of its worker"}),
	flag("contiguous", 0, option{ignored: oneWorker}),
	need("constraint", 'C', option{env: "SBATCH_CONSTRAINT", refused: anyWorker}),
	need("core-spec", 'S', option{env: "SBATCH_CORE_SPEC", refused: noLayout}),
	need("cores-per-socket", 0, option{refused: noLayout}),
	need("cpu-freq", 0, option{refused: noPower}),
	need("cpus-per-gpu", 0, option{env: "SBATCH_CPUS_PER_GPU", set: count(func(d *draft) *int { return &d.perGPU })}),
	need("cpus-per-task", 'c', option{set: count(func(d *draft) *int { return &d.Size.CPUsPerTask })}),
	need("deadline", 0, option{refused: "a job keeps waiting until it has run"}),
	need("delay-boot", 0, option{env: "SBATCH_DELAY_BOOT", ignored: "nodes are not booted"}),
	need("dependency", 'd', option{set: (*draft).dependency}),
	need("distribution", 'm', option{env: "SBATCH_DISTRIBUTION", ignored: oneWorker}),
	need("error", 'e', option{env: "SBATCH_ERROR", set: text(func(d *draft) *string { return &d.Stdio.Error })}),
	need("exclude", 'x', option{refused: anyWorker}),
	maybe("exclusive", option{env: "SBATCH_EXCLUSIVE",
		refused: "a worker's cpus are shared; ask for as many as it has"}),
	need("export", 0, option{env: "SBATCH_EXPORT", set: text(func(d *draft) *string { return &d.export })}),
	need("export-file", 0, option{refused: "set the variables in the script"}),
	need("extra-node-info", 'B', option{refused: noLayout}),
	maybe("get-user-env", option{env: "SBATCH_GET_USER_ENV",
		refused: "a job has the environment of --export; its script may run a login shell"}),
	need("gid", 0, option{refused: "a job belongs to the user who submits it"}),
	need("gpu-bind", 0, option{env: "SBATCH_GPU_BIND", ignored: noLayout}),
	need("gpu-freq", 0, option{env: "SBATCH_GPU_FREQ", refused: noPower}),
	need("gpus", 'G', option{env: "SBATCH_GPUS", set: (*draft).gpus}),
	need("gpus-per-node", 0, option{env: "SBATCH_GPUS_PER_NODE", set: (*draft).gpus}),
	need("gpus-per-socket", 0, option{refused: noLayout}),
	need("gpus-per-task", 0, option{env: "SBATCH_GPUS_PER_TASK", set: (*draft).gpusPerTask}),
	need("gres", 0, option{env: "SBATCH_GRES", set: (*draft).gres}),
	need("gres-flags", 0, option{env: "SBATCH_GRES_FLAGS", ignored: noLayout}),
	flag("help", 'h', option{set: answer(func(d *draft) *bool { return &d.help })}),
	need("hint", 0, option{env: "SBATCH_HINT SLURM_HINT", ignored: noLayout}),
	flag("hold", 'H', option{refused: "a job starts as soon as a worker is free"}),
	flag("ignore-pbs", 0, option{env: "SBATCH_IGNORE_PBS", ignored: "only #SBATCH lines are read"}),
	need("input", 'i', option{env: "SBATCH_INPUT", set: text(func(d *draft) *string { return &d.Stdio.Input })}),
	need("job-name", 'J', option{env: "SBATCH_JOB_NAME", set: text(func(d *draft) *string { return &d.Name })}),
	need("kill-on-invalid-dep", 0, option{set: (*draft).killInvalid}),
	need("licenses", 'L', option{refused: "licenses are not counted"}),
	need("mail-type", 0, option{ignored: noMail}),
	need("mail-user", 0, option{ignored: noMail}),
	need("mcs-label", 0, option{ignored: "all jobs are the user's own"}),
	need("mem", 0, option{env: "SBATCH_MEM_PER_NODE", set: memory("mem")}),
	need("mem-bind", 0, option{env: "SBATCH_MEM_BIND", ignored: noLayout}),
	need("mem-per-cpu", 0, option{env: "SBATCH_MEM_PER_CPU", set: memory("cpu")}),
	need("mem-per-gpu", 0, option{env: "SBATCH_MEM_PER_GPU", set: memory("gpu")}),
	need("mincpus", 0, option{set: count(func(d *draft) *int { return &d.minCPUs })}),
	need("network", 0, option{env: "SBATCH_NETWORK", ignored: oneWorker}),
	maybe("nice", option{set: (*draft).nice}),
	with("no-kill", 'k', notation.Optional, option{env: "SBATCH_NO_KILL", ignored: oneWorker}),
	flag("no-requeue", 0, option{env: "SBATCH_NO_REQUEUE", set: requeue(false)}),
	need("nodefile", 'F', option{refused: anyWorker}),
	need("nodelist", 'w', option{refused: anyWorker}),
	need("nodes", 'N', option{set: (*draft).nodes}),
	need("ntasks", 'n', option{set: count(func(d *draft) *int { return &d.Size.Tasks })}),
	need("ntasks-per-core", 0, option{ignored: noLayout}),
	need("ntasks-per-gpu", 0, option{refused: noLayout}),
	need("ntasks-per-node", 0, option{set: count(func(d *draft) *int { return &d.perNode })}),
	need("ntasks-per-socket", 0, option{ignored: noLayout}),
	need("ntasks-per-tres", 0, option{refused: noLayout}),
	need("open-mode", 0, option{env: "SBATCH_OPEN_MODE", set: (*draft).openMode}),
	need("output", 'o', option{env: "SBATCH_OUTPUT", set: text(func(d *draft) *string { return &d.Stdio.Output })}),
	flag("overcommit", 'O', option{env: "SBATCH_OVERCOMMIT", ignored: oneWorker}),
	flag("oversubscribe", 's', option{ignored: "workers are shared, but cpus are not"}),
	flag("parsable", 0, option{set: answer(func(d *draft) *bool { return &d.Answer.Parsable })}),
	need("partition", 'p', option{env: "SBATCH_PARTITION",
		set: text(func(d *draft) *string { return &d.Labels.Partition })}),
	need("power", 0, option{env: "SBATCH_POWER", ignored: noPower}),
	need("prefer", 0, option{ignored: anyWorker}),
	need("priority", 0, option{set: (*draft).priority}),
	need("profile", 0, option{env: "SBATCH_PROFILE", ignored: "Corral measures all tasks in the same way"}),
	maybe("propagate", option{set: (*draft).propagate}),
	need("qos", 'q', option{env: "SBATCH_QOS", set: text(func(d *draft) *string { return &d.Labels.QOS })}),
	flag("quiet", 'Q', option{set: answer(func(d *draft) *bool { return &d.Answer.Quiet })}),
	flag("reboot", 0, option{refused: "nodes are not booted"}),
	flag("requeue", 0, option{env: "SBATCH_REQUEUE", set: requeue(true)}),
	need("reservation", 0, option{env: "SBATCH_RESERVATION", refused: "there are no reservations"}),
	need("signal", 0, option{env: "SBATCH_SIGNAL",
		set: parsed(func(d *draft) **notation.Warning { return &d.Limits.Signal }, notation.ParseWarning)}),
	need("sockets-per-node", 0, option{refused: noLayout}),
	flag("spread-job", 0, option{env: "SBATCH_SPREAD_JOB", ignored: oneWorker}),
	need("switches", 0, option{env: "SBATCH_REQ_SWITCH", ignored: oneWorker}),
	need("tasks-per-node", 0, option{set: count(func(d *draft) *int { return &d.perNode })}),
	flag("test-only", 0, option{set: answer(func(d *draft) *bool { return &d.Answer.TestOnly })}),
	need("thread-spec", 0, option{env: "SBATCH_THREAD_SPEC", refused: noLayout}),
	need("threads-per-core", 0, option{env: "SBATCH_THREADS_PER_CORE", ignored: noLayout}),
	need("time", 't', option{env: "SBATCH_TIMELIMIT",
		set: parsed(func(d *draft) *time.Duration { return &d.Limits.Time }, notation.ParseLimit)}),
	need("time-min", 0, option{ignored: "a job may use the whole time of its limit"}),
	need("tmp", 0, option{set: parsed(func(d *draft) *int64 { return &d.DiskMiB }, notation.ParseMemory)}),
	need("uid", 0, option{refused: "a job belongs to the user who submits it"}),
	flag("use-min-nodes", 0, option{env: "SBATCH_USE_MIN_NODES", ignored: oneWorker}),
	flag("verbose", 'v', option{env: "SBATCH_DEBUG", ignored: "there are no further messages"}),
	flag("version", 'V', option{set: answer(func(d *draft) *bool { return &d.version })}),
	flag("usage", 0, option{set: answer(func(d *draft) *bool { return &d.help })}),
	flag("wait", 'W', option{env: "SBATCH_WAIT", set: answer(func(d *draft) *bool { return &d.Answer.Wait })}),
	need("wait-all-nodes", 0, option{env: "SBATCH_WAIT_ALL_NODES", ignored: oneWorker}),
	need("wckey", 0, option{env: "SBATCH_WCKEY", ignored: "there are no workload characterization keys"}),
	need("wrap", 0, option{set: func(d *draft, v string) error { d.wrap = &v; return nil }}),
}

// byName maps long names to options.
var byName = func() map[string]*option {
	m := map[string]*option{}
	for i := range options {
		m[options[i].Long] = &options[i]
	}
	return m
}()

// getopt parses sbatch's command lines, and the directives in scripts.
var getopt = func() notation.Getopt {
	g := notation.Getopt{Command: "sbatch", Ordered: true}
	for _, o := range options {
		g.Options = append(g.Options, o.Option)
	}
	return g
}()

// show formats an option as a user would write it.
func show(g notation.Given) string {
	if g.Value == "" {
		return "--" + g.Name
	}
	return "--" + g.Name + "=" + strings.TrimSpace(g.Value)
}
