package slurm

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/jobdir"
)

// idleReasons are the prefixes of squeue's REASON for jobs that wait for an unknown time.
var idleReasons = []string{"JobHeld", "DependencyNeverSatisfied", "Assoc", "QOS", "PartitionDown",
	"PartitionInactive", "PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig", "Reservation", "BadConstraints",
	"InvalidAccount", "InvalidQOS", "Licenses", "Cleaning"}

// jobLine matches the beginning of a job's line. A site's own version of squeue may also print other lines.
var jobLine = regexp.MustCompile(`^[A-Z_]+\|-?\d+\|`)

// jobFields is the number of fields of a job's line; the last one is a dot.
const jobFields = 15

// addJobs adds the jobs in the lines of queue.sh. A line that is cut short is an error.
func addJobs(q *corral.Backlog, out string) error {
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); !jobLine.MatchString(line) {
			continue
		}
		f := strings.Split(line, "|")
		if len(f) < jobFields || f[len(f)-1] != "." {
			return fmt.Errorf("squeue printed %q", gridsite.OneLine(line))
		}
		j, err := parseJob(f)
		if err != nil {
			return fmt.Errorf("squeue printed %q: %w", gridsite.OneLine(line), err)
		}
		reason := f[13]
		idle := func(prefix string) bool { return strings.HasPrefix(reason, prefix) }
		switch {
		case f[0] != "PENDING":
			q.Running = append(q.Running, j)
			continue
		case slices.ContainsFunc(idleReasons, idle), idle("Dependency") && len(j.After) == 0,
			idle("BeginTime") && j.StartsAt.IsZero():
			q.Ineligible++
			continue
		case idle("BeginTime"):
			j.NotBefore = j.StartsAt
		case idle("JobArrayTaskLimit"):
			j.Array = f[6]
		}
		q.Waiting = append(q.Waiting, j)
	}
	return nil
}

// parseJob parses the fields of a job's line.
func parseJob(f []string) (j corral.QueuedJob, err error) {
	n, err := strconv.ParseUint(f[1], 10, 31)
	if err == nil {
		j.Limit, err = spanOf(f[2])
	}
	if err == nil {
		j.Elapsed, err = spanOf(f[3])
	}
	if err == nil && f[4] != "N/A" {
		j.StartsAt, err = jobdir.ParseTime(f[4])
	}
	if err != nil {
		return j, err
	}
	j.Processors, j.ID, j.Queue = int(n), f[5], f[7]
	if n, err := strconv.ParseUint(f[8], 10, 31); err == nil {
		j.Nodes = int(n)
	}
	// NO: the job, or its partition, requires nodes without other jobs. USER and MCS share nodes with some jobs only.
	j.Whole = f[9] == "NO"
	j.MemoryMiB = memoryOf(f[10])
	if f[0] != "PENDING" {
		j.On, err = hostsOf(f[11])
		if f[6] != f[5] {
			j.Array = f[6]
		}
	} else {
		j.After = dependencies(f[12])
	}
	return j, err
}

// memoryOf parses squeue's MIN_MEMORY, such as 500M or 4G, in MiB; 0: not known.
func memoryOf(s string) int {
	unit := map[string]float64{"K": 1.0 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}
	if s == "" {
		return 0
	}
	factor, ok := unit[s[len(s)-1:]]
	if ok {
		s = s[:len(s)-1]
	} else {
		factor = 1
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n < 0 || n > 1e9 {
		return 0
	}
	return int(n*factor + 0.5)
}

// unfulfilled matches a dependency on another job that has not ended: afterok:12(unfulfilled),
// afterany:12_3(unfulfilled).
var unfulfilled = regexp.MustCompile(`after(?:any|ok|notok|corr)?:(\d+)(?:_(?:\d+|\*))?(?:\+\d+)?\(unfulfilled\)`)

// dependencies returns the IDs of the jobs for whose ends a job waits.
func dependencies(s string) (ids []string) {
	for _, m := range unfulfilled.FindAllStringSubmatch(s, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// mostHosts is the maximum number of hosts in a list.
const mostHosts = 100_000

// hostsOf expands Slurm's list of hosts, such as a[1-3,07],b2.
func hostsOf(s string) (all []string, err error) {
	for s != "" && s != "(null)" {
		var one string
		if one, s, err = nextHost(s); err != nil {
			return nil, err
		}
		names := []string{""}
		for one != "" {
			head, list, found := strings.Cut(one, "[")
			parts := []string{head}
			if one = ""; found {
				list, one, _ = strings.Cut(list, "]")
				if parts, err = numbered(head, list); err != nil {
					return nil, err
				}
			}
			if len(names)*len(parts)+len(all) > mostHosts {
				return nil, fmt.Errorf("a list of more than %d hosts", mostHosts)
			}
			var longer []string
			for _, name := range names {
				for _, p := range parts {
					longer = append(longer, name+p)
				}
			}
			names = longer
		}
		all = append(all, names...)
	}
	return all, nil
}

// nextHost cuts a list after the first comma that is not within brackets.
func nextHost(s string) (one, rest string, err error) {
	depth := 0
	for i, r := range s {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				return s[:i], s[i+1:], nil
			}
		}
	}
	if depth != 0 {
		return "", "", fmt.Errorf("%q is not a list of hosts", gridsite.OneLine(s))
	}
	return s, "", nil
}

// numbered returns a prefix with each number of a list such as 1-3,07.
func numbered(prefix, list string) (all []string, err error) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, ok := strings.Cut(part, "-")
		if !ok {
			to = from
		}
		a, err := strconv.ParseUint(from, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%q is not a list of hosts", gridsite.OneLine(list))
		}
		b, err := strconv.ParseUint(to, 10, 31)
		if err != nil || b < a || b-a > mostHosts {
			return nil, fmt.Errorf("%q is not a list of hosts", gridsite.OneLine(list))
		}
		for n := a; n <= b; n++ {
			all = append(all, fmt.Sprintf("%s%0*d", prefix, len(from), n))
		}
	}
	return all, nil
}
