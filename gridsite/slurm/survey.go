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

// Survey reports Slurm's partitions and, if Slurm keeps accounts and enforces their limits, the user's limits. If it
// finds no version or no partitions, Slurm is not usable, which is an error. Any other missing fact is noted, and never
// causes a refusal later.
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
		survey.Note(&facts, "the hardware of the nodes", err)
	}
	if err := addUser(said, options, partitions, &facts); err != nil {
		survey.Note(&facts, "the policy for the user", err)
	}
	addMaintenance(said, &facts)
	addAllowance(said, options, &facts)
	addPrice(said, options, partitions, &facts)
	for _, p := range partitions {
		facts.Queues = append(facts.Queues, p.SiteQueue)
	}
	return facts, nil
}

var versionNumber = regexp.MustCompile(`\d+\.\d+(?:\.\S+)?`)

// versionOf parses "slurm 23.11.4" and "slurm-wlm 22.05.8".
func versionOf(said string) string {
	return strings.TrimSpace("slurm " + versionNumber.FindString(said))
}

// A partition is a partition of Slurm, with the data that determines further limits in it.
type partition struct {
	corral.SiteQueue
	qos           string // name of the partition's QOS; empty: none
	nodeCPUs      int    // per node; 0: no limit
	nodeMemoryMiB int
	weights       string // TRESBillingWeights
	defaultMemory bool   // the partition sets a default memory per cpu
	whole         bool   // jobs get whole nodes
}

// parsePartitions parses scontrol -o show partition: one line per partition, of NAME=VALUE. The value of a limit must
// be valid; a limit that an old version does not support counts as no limit.
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

// parsePartition parses the line of one partition.
func parsePartition(line string) (partition, error) {
	values := map[string]string{}
	for _, word := range strings.Fields(line) {
		if k, v, ok := strings.Cut(word, "="); ok {
			values[k] = v
		}
	}
	if !strings.HasPrefix(line, "PartitionName=") || values["PartitionName"] == "" {
		return partition{}, fmt.Errorf("no partition in %q", gridsite.OneLine(line))
	}
	p := partition{weights: values["TRESBillingWeights"],
		SiteQueue: corral.SiteQueue{Name: values["PartitionName"], Default: values["Default"] == "YES"}}
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
	p.defaultMemory, p.whole = p.CPUMemoryMiB > 0, values["OverSubscribe"] == "EXCLUSIVE"
	return p, nil
}

// noLimit are the words of Slurm's tools for a limit that is not set.
var noLimit = []string{"", "UNLIMITED", "INFINITE", "NONE", "(null)"}

// count parses a limit; 0 means that no limit is set.
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

// addNodes adds the hardware of the nodes to the partitions, from sinfo's PARTITION|CPUS|MEMORY|GRES|NODES|DISK: one
// line per kind of node and partition. A disk of 0 is not known to Slurm.
func addNodes(partitions []partition, out string) error {
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 6 {
			return fmt.Errorf("sinfo printed %q", gridsite.OneLine(line))
		}
		var n [4]int
		for i, s := range []string{f[1], f[2], f[4], f[5]} {
			v, err := strconv.ParseUint(s, 10, 31)
			if err != nil {
				return fmt.Errorf("sinfo printed %q", gridsite.OneLine(line))
			}
			n[i] = int(v)
		}
		i := slices.IndexFunc(partitions, func(p partition) bool { return p.Name == f[0] })
		if i < 0 || n[2] == 0 { // a new partition, or one without nodes
			continue
		}
		partitions[i].add(n[2], corral.Resources{CPUs: n[0], MemoryMiB: n[1], GPUs: gpus(f[3]), DiskMiB: n[3]})
	}
	return nil
}

// add includes a number of equal nodes. The largest node counts, because a job's request must fit a single node. For
// the memory per cpu the smallest share counts, because a job may be assigned any node, unless the partition sets a
// default. Nodes without processors run no job.
func (p *partition) add(nodes int, has corral.Resources) {
	if has.CPUs == 0 {
		return
	}
	if !p.defaultMemory {
		p.CPUMemoryMiB = atMost(max(1, has.MemoryMiB/has.CPUs), p.CPUMemoryMiB)
	}
	has = corral.Resources{CPUs: atMost(has.CPUs, p.nodeCPUs), MemoryMiB: atMost(has.MemoryMiB, p.nodeMemoryMiB),
		GPUs: has.GPUs, DiskMiB: has.DiskMiB}
	p.CPUs, p.MemoryMiB, p.GPUs = max(p.CPUs, has.CPUs), max(p.MemoryMiB, has.MemoryMiB), max(p.GPUs, has.GPUs)
	p.NodeTypes = append(p.NodeTypes, corral.NodeType{Count: nodes, Resources: has, Whole: p.whole})
}

// gpus adds up the gpus in a list of generic resources NAME[:TYPE][:COUNT], possibly with a part in parentheses, as in
// gpu:a100:4(S:0-1),nvme:1. A type may also be a number.
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
			n = 1 // the last field is the type, or gpu itself
		}
		sum += n
	}
	return sum
}

// atMost returns the smaller of two limits; 0 means no limit.
func atMost[N int | corral.Seconds](n, limit N) N {
	if limit == 0 || n != 0 && n < limit {
		return n
	}
	return limit
}
