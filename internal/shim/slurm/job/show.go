package job

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// Show returns scontrol's output for a job, or for each row of an array's tasks. details adds the lines of -d, and with
// oneLine (-o) a job is a single line. Without an id, all jobs are shown. If the job does not exist, the error is
// ErrNoJob.
func Show(jobs []Job, id *notation.JobID, details, oneLine bool, now time.Time) (string, error) {
	var f Filter
	if id != nil { // one job, or one array
		f.Jobs = []notation.JobID{*id}
	}
	list := rows(f.Select(jobs), f.tasks(), now)
	if len(list) == 0 && id != nil {
		return "", ErrNoJob
	}
	if len(list) == 0 {
		return "No jobs in the system\n", nil
	}
	var b strings.Builder
	for i := range list {
		lines := show(&list[i], details)
		if oneLine {
			b.WriteString(strings.Join(lines, " ") + " \n")
			continue
		}
		b.WriteString(strings.Join(lines, "\n   ") + "\n   \n\n")
	}
	return b.String(), nil
}

// show returns scontrol's lines for a job. Values that are the same for all of Corral's jobs are written as constants.
func show(r *row, details bool) []string {
	s, t := r.Spec, r.Times
	lines := []string{
		showName(r),
		fmt.Sprintf("UserId=%s(%d) GroupId=%s(%d) MCS_label=N/A", s.User.Name, s.User.UID, s.User.Group, s.User.GID),
		fmt.Sprintf("Priority=%d Nice=%d Account=%s QOS=%s",
			r.Priority, s.Nice, cmp.Or(s.Account, null), cmp.Or(s.QOS, "normal")),
		fmt.Sprintf("JobState=%s Reason=%s Dependency=%s", r.State, r.Reason, r.dependency()),
		fmt.Sprintf("Requeue=%d Restarts=%d BatchFlag=1 Reboot=0 ExitCode=%s", bit(s.Requeue), r.Restarts, r.Exit),
	}
	if details {
		lines = append(lines, "DerivedExitCode=0:0")
	}
	lines = append(lines,
		fmt.Sprintf("RunTime=%s TimeLimit=%s TimeMin=N/A",
			notation.FullClock(r.elapsed()), r.limit(notation.FullClock)),
		fmt.Sprintf("SubmitTime=%s EligibleTime=%s", moment(t.Submitted, "Unknown"), moment(t.Eligible, "Unknown")),
		"AccrueTime="+moment(t.Eligible, "Unknown"),
		fmt.Sprintf("StartTime=%s EndTime=%s Deadline=N/A",
			moment(r.start(), "Unknown"), moment(r.end(), "Unknown")),
	)
	if !r.start().IsZero() {
		lines = append(lines, fmt.Sprintf("PreemptEligibleTime=%s PreemptTime=None", moment(r.start(), "Unknown")))
	}
	lines = append(lines,
		fmt.Sprintf("SuspendTime=None SecsPreSuspend=0 LastSchedEval=%s Scheduler=Main", evaluated(r)),
		fmt.Sprintf("Partition=%s AllocNode:Sid=%s:0", s.Partition, cmp.Or(s.Command.Host, "localhost")),
		"ReqNodeList=(null) ExcNodeList=(null)",
		"NodeList="+r.Node,
	)
	// Slurm omits lines that do not apply yet, instead of leaving them empty.
	if r.Node != "" { // it has a worker
		lines = append(lines, "BatchHost="+r.Node)
	}
	lines = append(lines,
		fmt.Sprintf("NumNodes=1 NumCPUs=%d NumTasks=%d CPUs/Task=%d ReqB:S:C:T=0:0:*:*",
			s.Size.CPUs, max(1, s.Size.Tasks), max(1, s.Size.CPUsPerTask)),
		"TRES="+r.tres(),
		"Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*",
	)
	return append(lines, showRest(r, details)...)
}

// showName returns the first line.
func showName(r *row) string {
	if r.ArrayID == 0 {
		return fmt.Sprintf("JobId=%d JobName=%s", r.ID, r.Name)
	}
	return fmt.Sprintf("JobId=%s ArrayJobId=%d ArrayTaskId=%s JobName=%s", r.raw(), r.ArrayID, r.arrayTask(), r.Name)
}

// showRest returns the remaining lines, beginning with the job's resources on its node.
func showRest(r *row, details bool) []string {
	s := r.Spec
	var lines []string
	if details && r.Node != "" {
		lines = append(lines, "JOB_GRES="+null,
			fmt.Sprintf("  Nodes=%s CPU_IDs=0 Mem=%d GRES=", r.Node, s.Size.Total()))
	}
	// Memory is shown as requested, and not as a sum.
	per := "Node" // --mem
	if s.Size.MemoryEach {
		per = "CPU" // --mem-per-cpu
	}
	lines = append(lines,
		fmt.Sprintf("MinCPUsNode=%d MinMemory%s=%s MinTmpDiskNode=0", max(1, s.Size.CPUsPerTask), per, r.memory()),
		"Features=(null) DelayBoot=00:00:00",
		"OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)",
		"Command="+cmp.Or(s.Command.Line, null),
		"WorkDir="+s.Files.Directory,
	)
	if s.Comment != "" {
		lines = append(lines, "Comment="+s.Comment+" ")
	}
	return append(lines,
		"StdErr="+r.stderr(),
		"StdIn="+r.stdin(),
		"StdOut="+r.file(s.Files.Output),
		"Power=",
	)
}

// evaluated returns the time at which the job was last considered for scheduling, as far as it is known.
func evaluated(r *row) string {
	if r.Times.Started.IsZero() {
		return moment(r.Times.Submitted, "Unknown")
	}
	return moment(r.Times.Started, "Unknown")
}

func bit(on bool) int {
	if on {
		return 1
	}
	return 0
}

// An Association is an account under which a user may submit jobs to a cluster.
type Association struct {
	User, Account, Cluster string
	DefaultAccount, Admin  string // of the user; Admin is "None" or one of Slurm's admin levels
}

// A userColumn is a column of sacctmgr's list of users.
type userColumn struct {
	name  string
	width int
	value func(Association) string
}

// userText returns the value of a column that is the same for every association.
func userText(text string) func(Association) string { return func(Association) string { return text } }

// userColumns are the columns of "list user -s", in order.
var userColumns = []userColumn{
	{"User", 10, func(a Association) string { return a.User }},
	{"Def Acct", 10, func(a Association) string { return a.DefaultAccount }},
	{"Admin", 9, func(a Association) string { return a.Admin }},
	{"Cluster", 10, func(a Association) string { return a.Cluster }},
	{"Account", 10, func(a Association) string { return a.Account }},
	{"Partition", 10, userText("")}, {"Share", 9, userText("1")}, {"Priority", 10, userText("")},
	{"MaxJobs", 7, userText("")}, {"MaxNodes", 8, userText("")}, {"MaxCPUs", 8, userText("")},
	{"MaxSubmit", 9, userText("")}, {"MaxWall", 11, userText("")}, {"MaxCPUMins", 11, userText("")},
	{"QOS", 20, userText("normal")}, {"Def QOS", 9, userText("")},
}

var sacctmgr = notation.Getopt{Command: "sacctmgr", Options: notation.Options(
	"help|h usage immediate|i noheader|n oneliner|o parsable|p parsable2|P quiet|Q readonly|r associations|s " +
		"verbose|v version|V")}

// Users runs a command line of sacctmgr: "list user [NAME...] [format=COLUMN%WIDTH,...]", with -n, -s, -p and -P. All
// other commands are unsupported.
func Users(words []string, associations []Association) (string, error) {
	given, rest, err := sacctmgr.Parse(words)
	if err != nil {
		return "", err
	}
	flags := map[string]bool{}
	for _, g := range given {
		flags[g.Name] = true
	}
	if len(rest) < 2 || !abbreviates(rest[0], "list", "show") || !abbreviates(rest[1], "users", "users") {
		what := "sacctmgr " + strings.Join(rest, " ")
		return "", &notation.Unsupported{What: what, Why: "it only lists users"}
	}
	columns := slices.Clone(userColumns)
	if !flags["associations"] {
		columns = columns[:3] // only columns of the user, not of associations
	}
	var names []string
	for _, word := range rest[2:] {
		key, value, set := strings.Cut(word, "=")
		switch {
		case !set: // a single name is a user
			names = append(names, word)
		case strings.EqualFold(key, "format"):
			if columns, err = parseUserColumns(value); err != nil {
				return "", err
			}
		case strings.HasPrefix("users", strings.ToLower(key)) || strings.HasPrefix("names", strings.ToLower(key)):
			names = append(names, strings.Split(value, ",")...)
		}
	}
	associations = slices.DeleteFunc(slices.Clone(associations), func(a Association) bool {
		return len(names) > 0 && !slices.Contains(names, a.User)
	})
	if !flags["associations"] { // one line for each user
		associations = slices.CompactFunc(associations, func(a, b Association) bool { return a.User == b.User })
	}
	return userTable(columns, associations, flags), nil
}

// abbreviates reports whether a word is a prefix of one of two words.
func abbreviates(word, one, other string) bool {
	word = strings.ToLower(word)
	return len(word) > 2 && (strings.HasPrefix(one, word) || strings.HasPrefix(other, word))
}

// userTable prints associations like sacctmgr.
func userTable(columns []userColumn, associations []Association, flags map[string]bool) string {
	var b strings.Builder
	s := sheet{parsable: flags["parsable"] || flags["parsable2"], delimiter: "|", trailing: flags["parsable"]}
	spans := func(text func(userColumn) string) []span {
		line := make([]span, len(columns))
		for i, c := range columns {
			line[i] = span{text(c), c.width}
		}
		return line
	}
	if !flags["noheader"] {
		s.header(&b, spans(func(c userColumn) string { return c.name }))
	}
	for _, a := range associations {
		s.line(&b, spans(func(c userColumn) string { return c.value(a) }))
	}
	return b.String()
}

// parseUserColumns parses the argument of format=: names of columns, possibly abbreviated, and widths.
func parseUserColumns(list string) ([]userColumn, error) {
	var columns []userColumn
	for one := range strings.SplitSeq(list, ",") {
		name, size, _ := strings.Cut(one, "%")
		i := slices.IndexFunc(userColumns, func(c userColumn) bool {
			plain := strings.ReplaceAll(strings.ToLower(c.name), " ", "")
			return name != "" && strings.HasPrefix(plain, strings.ToLower(name))
		})
		if i < 0 {
			return nil, fmt.Errorf("Unknown field '%s'", one) // Slurm's wording
		}
		c := userColumns[i]
		if n, ok := width(size); ok {
			c.width = n
		}
		columns = append(columns, c)
	}
	return columns, nil
}
