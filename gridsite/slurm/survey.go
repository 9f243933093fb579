package slurm

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/survey"
)

// Survey says what Slurm has of partitions and, where it keeps accounts and enforces their limits, what the user may.
// Without its version or its partitions there is no Slurm to speak of, which is an error; whatever else cannot be found
// out is noted, and refuses nothing later.
func (b *Batch) Survey(ctx context.Context, options corral.BatchOptions) (corral.SiteFacts, error) {
	said, facts, err := survey.Ask(ctx, b.conn, b.Root(), pathScript, surveyScript)
	if err != nil {
		return facts, err
	}
	version, err := said.Of("version")
	if err != nil {
		return facts, corral.Errorf(corral.Failed, "Slurm does not answer: sinfo: %w", err)
	}
	out, err := said.Of("partitions")
	if err != nil {
		return facts, corral.Errorf(corral.Failed, "Slurm does not answer: scontrol: %w", err)
	}
	partitions, err := parsePartitions(out)
	if err != nil {
		return facts, corral.Errorf(corral.Failed, "reading Slurm's partitions: %w", err)
	}
	facts.Batch = versionOf(version)
	if out, err = said.Of("nodes"); err == nil {
		err = addNodes(partitions, out)
	}
	if err != nil {
		survey.Note(&facts, "what nodes have", err)
	}
	if err := addUser(said, options, partitions, &facts); err != nil {
		survey.Note(&facts, "what the user may have", err)
	}
	addMaintenance(said, &facts)
	addAllowance(said, options, &facts)
	for _, p := range partitions {
		facts.Queues = append(facts.Queues, p.SiteQueue)
	}
	return facts, nil
}

var versionNumber = regexp.MustCompile(`\d+\.\d+(?:\.\S+)?`)

// versionOf reads "slurm 23.11.4" and "slurm-wlm 22.05.8".
func versionOf(said string) string {
	return strings.TrimSpace("slurm " + versionNumber.FindString(said))
}

// A partition is one of Slurm's, with what says which other limits hold there.
type partition struct {
	corral.SiteQueue
	qos           string // of the partition; empty: it has none
	nodeCPUs      int    // of one node, at most; 0: no limit
	nodeMemoryMiB int
	defaultMemory bool // of each cpu is set
}

// parsePartitions reads scontrol -o show partition: a line for each, of NAME=VALUE. Of a limit that is there it must
// understand the value; one that an old version lacks is none.
func parsePartitions(out string) ([]partition, error) {
	var all []partition
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line == "" || line == "No partitions in the system" {
			continue
		}
		p, err := parsePartition(line)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// parsePartition reads the line of one partition.
func parsePartition(line string) (partition, error) {
	values := map[string]string{}
	for _, word := range strings.Fields(line) {
		if k, v, ok := strings.Cut(word, "="); ok {
			values[k] = v
		}
	}
	if !strings.HasPrefix(line, "PartitionName=") || values["PartitionName"] == "" {
		return partition{}, fmt.Errorf("no partition is in %q", gridsite.OneLine(line))
	}
	p := partition{SiteQueue: corral.SiteQueue{Name: values["PartitionName"], Default: values["Default"] == "YES"}}
	if qos := values["QoS"]; qos != "N/A" && qos != "(null)" {
		p.qos = qos
	}
	var err error
	if p.MaxWalltime, err = spanOf(values["MaxTime"]); err != nil {
		return p, fmt.Errorf("MaxTime of partition %s: %w", p.Name, err)
	}
	for _, limit := range []struct {
		name string
		to   *int
	}{
		{"MaxNodes", &p.MaxNodes}, {"TotalNodes", &p.Nodes}, {"MaxCPUsPerNode", &p.nodeCPUs},
		{"MaxMemPerNode", &p.nodeMemoryMiB}, {"DefMemPerCPU", &p.CPUMemoryMiB},
	} {
		if *limit.to, err = count(values[limit.name]); err != nil {
			return p, fmt.Errorf("%s of partition %s: %w", limit.name, p.Name, err)
		}
	}
	p.defaultMemory = p.CPUMemoryMiB > 0
	return p, nil
}

// noLimit are the words of Slurm's tools for one that is not set.
var noLimit = []string{"", "UNLIMITED", "INFINITE", "NONE", "(null)"}

// count reads a limit; 0 is none.
func count(s string) (int, error) {
	if slices.Contains(noLimit, s) {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", gridsite.OneLine(s))
	}
	return int(n), nil
}

// addNodes adds to the partitions what their nodes have, from sinfo's PARTITION|CPUS|MEMORY|GRES|NODES: one line for
// each sort of node in each partition.
func addNodes(partitions []partition, out string) error {
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 5 {
			return fmt.Errorf("sinfo said %q", gridsite.OneLine(line))
		}
		var n [3]int
		for i, s := range []string{f[1], f[2], f[4]} {
			v, err := strconv.ParseUint(s, 10, 31)
			if err != nil {
				return fmt.Errorf("sinfo said %q", gridsite.OneLine(line))
			}
			n[i] = int(v)
		}
		i := slices.IndexFunc(partitions, func(p partition) bool { return p.Name == f[0] })
		if i < 0 || n[2] == 0 { // a partition made just now, or one without nodes
			continue
		}
		partitions[i].add(n[0], n[1], gpus(f[3]))
	}
	return nil
}

// add takes in one sort of node. The largest node counts, since a job asks for what a single node must have. Of the
// memory that comes with a cpu the smallest share counts, since a job may get any node; a default that the partition
// sets holds instead.
func (p *partition) add(cpus, memoryMiB, gpus int) {
	p.CPUs = max(p.CPUs, atMost(cpus, p.nodeCPUs))
	p.MemoryMiB = max(p.MemoryMiB, atMost(memoryMiB, p.nodeMemoryMiB))
	p.GPUs = max(p.GPUs, gpus)
	if !p.defaultMemory && cpus > 0 {
		p.CPUMemoryMiB = atMost(max(1, memoryMiB/cpus), p.CPUMemoryMiB)
	}
}

// gpus sums the gpus in a list of generic resources, NAME[:TYPE][:COUNT] with more in brackets, as
// gpu:a100:4(S:0-1),nvme:1. A type may be a number, too.
func gpus(gres string) int {
	const most = 1e6
	sum := 0
	for one := range strings.SplitSeq(gres, ",") {
		one, _, _ = strings.Cut(one, "(")
		f := strings.Split(one, ":")
		if f[0] != "gpu" {
			continue
		}
		n, err := strconv.Atoi(f[len(f)-1])
		if err != nil || n < 0 || n > most {
			n = 1 // the last is its type, or gpu itself
		}
		sum += n
	}
	return sum
}

// atMost is the smaller of two numbers; 0 means no limit.
func atMost[N int | corral.Seconds](n, limit N) N {
	if limit == 0 || n != 0 && n < limit {
		return n
	}
	return limit
}
