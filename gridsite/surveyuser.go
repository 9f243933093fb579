package gridsite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
)

// A policy is what an association, or a QOS, of Slurm's accounting allows; 0 is no limit.
type policy struct {
	maxJobs, maxSubmit int // of the user, running, and waiting or running
	maxWalltime        corral.Seconds
	maxNodes           int // of one job
}

// over returns p with the limits of weaker where p has none: it is how Slurm goes from the QOS of a partition to that
// of the job, and to the association.
func (p policy) over(weaker policy) policy {
	if p.maxJobs == 0 {
		p.maxJobs = weaker.maxJobs
	}
	if p.maxSubmit == 0 {
		p.maxSubmit = weaker.maxSubmit
	}
	if p.maxWalltime == 0 {
		p.maxWalltime = weaker.maxWalltime
	}
	if p.maxNodes == 0 {
		p.maxNodes = weaker.maxNodes
	}
	return p
}

// An association lets the user submit in the name of an account, to one partition or to all.
type association struct {
	account, partition, defaultQOS string
	qos                            []string
	policy
}

// A qualityOfService is Slurm's QOS. beyond has the limits of partitions that it lifts.
type qualityOfService struct {
	policy
	beyond []string
}

// slurmUser adds to the partitions and the facts what holds for the user with these options. Without accounting, or
// where its limits are not enforced, that is nothing.
func slurmUser(said sections, options corral.BatchOptions, partitions []partition, facts *corral.SiteFacts) error {
	enforced, err := limitsEnforced(said)
	if err != nil || !enforced {
		return err
	}
	out, err := said.of("associations")
	if err != nil {
		return fmt.Errorf("sacctmgr: %w", err)
	}
	associations, err := parseAssociations(out)
	if err != nil {
		return err
	}
	if out, err = said.of("qos"); err != nil {
		return fmt.Errorf("sacctmgr: %w", err)
	}
	qualities, err := parseQualities(out)
	if err != nil {
		return err
	}
	if options.Account == "" {
		if options.Account, err = said.of("account"); err != nil {
			return fmt.Errorf("sacctmgr: %w", err)
		}
	}
	for i := range partitions {
		p := &partitions[i]
		held, beyond, found := allowed(p, options, associations, qualities)
		if !found {
			facts.Notes = append(facts.Notes, oneLine(fmt.Sprintf("the user has no account %q for queue %s", options.Account, p.Name)))
			continue
		}
		p.limit(held, beyond)
		if p.Name == options.Queue || options.Queue == "" && p.Default {
			facts.MaxJobs, facts.MaxSubmit = held.maxJobs, held.maxSubmit
		}
	}
	return nil
}

// limitsEnforced reads two lines of scontrol show config.
func limitsEnforced(said sections) (bool, error) {
	out, err := said.of("config")
	if err != nil {
		return false, fmt.Errorf("scontrol: %w", err)
	}
	values := map[string]string{}
	for line := range strings.Lines(out) {
		k, v, _ := strings.Cut(line, "=")
		values[strings.TrimSpace(k)] = strings.TrimSpace(v)
	}
	enforced, ok := values["AccountingStorageEnforce"]
	if !ok {
		return false, fmt.Errorf("scontrol said %q", oneLine(out))
	}
	words := strings.Split(enforced, ",")
	return slices.Contains(words, "limits") || slices.Contains(words, "safe"), nil
}

// allowed returns what holds for a job in the partition, and which of the partition's own limits do not; found is
// false if the user has no association for it.
func allowed(p *partition, options corral.BatchOptions, associations []association, qualities map[string]qualityOfService) (held policy, beyond []string, found bool) {
	i := slices.IndexFunc(associations, func(a association) bool { return a.account == options.Account && a.partition == p.Name })
	if i < 0 {
		i = slices.IndexFunc(associations, func(a association) bool { return a.account == options.Account && a.partition == "" })
	}
	if i < 0 {
		return policy{}, nil, false
	}
	a := associations[i]
	name := options.QOS
	switch {
	case name != "":
	case a.defaultQOS != "":
		name = a.defaultQOS
	case len(a.qos) == 1:
		name = a.qos[0]
	default:
		name = "normal" // Slurm's own default
	}
	job := qualities[name]
	return qualities[p.qos].over(job.policy).over(a.policy), job.beyond, true
}

// limit takes in what holds beside the partition's own limits.
func (p *partition) limit(held policy, beyond []string) {
	if slices.Contains(beyond, "PartitionTimeLimit") {
		p.MaxWalltime = 0
	}
	if slices.Contains(beyond, "PartitionMaxNodes") {
		p.MaxNodes = 0
	}
	p.MaxWalltime = atMost(held.maxWalltime, p.MaxWalltime)
	p.MaxNodes = atMost(held.maxNodes, p.MaxNodes)
}

// parseAssociations reads sacctmgr -nP show assoc: account, partition, then what parsePolicy reads, all QOS, the default.
func parseAssociations(out string) ([]association, error) {
	var all []association
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(f) != 8 || f[0] == "" {
			return nil, fmt.Errorf("sacctmgr said %q of an association", oneLine(line))
		}
		p, err := parsePolicy(f[2:6])
		if err != nil {
			return nil, fmt.Errorf("the association with account %s: %w", f[0], err)
		}
		a := association{account: f[0], partition: f[1], policy: p, defaultQOS: f[7]}
		if f[6] != "" {
			a.qos = strings.Split(f[6], ",")
		}
		all = append(all, a)
	}
	return all, nil
}

// parseQualities reads sacctmgr -nP show qos: name, flags, then what parsePolicy reads.
func parseQualities(out string) (map[string]qualityOfService, error) {
	all := map[string]qualityOfService{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(f) != 6 || f[0] == "" {
			return nil, fmt.Errorf("sacctmgr said %q of a QOS", oneLine(line))
		}
		p, err := parsePolicy(f[2:])
		if err != nil {
			return nil, fmt.Errorf("QOS %s: %w", f[0], err)
		}
		all[f[0]] = qualityOfService{policy: p, beyond: strings.Split(f[1], ",")}
	}
	return all, nil
}

// parsePolicy reads MaxJobs, MaxSubmit, MaxWall and MaxTRES. Nothing is no limit.
func parsePolicy(f []string) (p policy, err error) {
	if p.maxJobs, err = slurmCount(f[0]); err != nil {
		return p, err
	}
	if p.maxSubmit, err = slurmCount(f[1]); err != nil {
		return p, err
	}
	if p.maxWalltime, err = slurmTime(f[2]); err != nil {
		return p, err
	}
	for one := range strings.SplitSeq(f[3], ",") {
		n, ok := strings.CutPrefix(one, "node=")
		if !ok {
			continue
		}
		if p.maxNodes, err = strconv.Atoi(n); err != nil || p.maxNodes < 0 {
			return p, fmt.Errorf("%q is no number of nodes", oneLine(n))
		}
	}
	return p, nil
}
