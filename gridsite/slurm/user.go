package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/survey"
)

// A policy contains the limits of an association or a QOS of Slurm's accounting; nil means no limit.
type policy [4]*limit

// Indices of a policy: the user's running jobs; those that wait or run; the time of one job; and its nodes.
const (
	maxJobs = iota
	maxSubmit
	maxWalltime
	maxNodes
)

// A limit of 0 means that no job may start.
type limit struct {
	most int64
	name string // with its owner
}

// value returns the limit in the notation of site facts: 0 if there is none.
func (l *limit) value() int64 {
	if l == nil {
		return 0
	}
	return l.most
}

// over returns p, with limits from weaker added where p has none. Slurm combines the QOS of a partition, the QOS of the
// job and the association in this order.
func (p policy) over(weaker policy) policy {
	for i := range p {
		p[i] = cmp.Or(p[i], weaker[i])
	}
	return p
}

// closed names the limit that prevents every job from starting, or returns "" if there is none.
func (p policy) closed() string {
	for _, l := range p {
		if l != nil && l.most == 0 {
			return l.name + " is 0"
		}
	}
	return ""
}

// An association permits the user to submit jobs under an account, to one partition or to all. It has its own limits,
// the list of permitted QOS, and a default QOS.
type association struct {
	account, partition, defaultQOS string
	qos                            []string
	policy
}

// A qualityOfService is a QOS of Slurm. beyond lists the limits of partitions that the QOS overrides.
type qualityOfService struct {
	policy
	beyond []string
}

// addUser adds the user's limits with these options to the partitions and the facts. It reads three tables of Slurm's
// accounting in order of dependency: whether limits are enforced, the QOS, and the user's accounts. Without accounting
// no limits are known. If limits are not enforced, only the existence of the QOS is checked, because Slurm would report
// no other error.
func addUser(said survey.Sections, options corral.BatchOptions, partitions []partition, facts *corral.SiteFacts) error {
	enforced, err := limitsEnforced(said)
	if err != nil {
		return err
	}
	out, err := said.Of("qos")
	if err != nil && !enforced {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sacctmgr: %w", err)
	}
	qualities, err := parseQualities(out)
	if err != nil {
		return err
	}
	if _, ok := qualities[strings.ToLower(options.QOS)]; options.QOS != "" && !ok {
		for i := range partitions {
			partitions[i].Closed = gridsite.OneLine(fmt.Sprintf("there is no QOS %q", options.QOS))
		}
		return nil
	}
	if !enforced {
		return nil
	}
	if out, err = said.Of("associations"); err != nil {
		return fmt.Errorf("sacctmgr: %w", err)
	}
	associations, err := parseAssociations(out)
	if err != nil {
		return err
	}
	if options.Account == "" {
		if options.Account, err = said.Of("account"); err != nil {
			return fmt.Errorf("sacctmgr: %w", err)
		}
	}
	for i := range partitions {
		p := &partitions[i]
		held, beyond, found := allowed(p, options, associations, qualities)
		if !found {
			p.Closed = gridsite.OneLine(fmt.Sprintf("the user has no account %q for this queue", options.Account))
			continue
		}
		p.limit(held, beyond)
		if p.Name == options.Queue || options.Queue == "" && p.Default {
			facts.MaxJobs, facts.MaxSubmit = int(held[maxJobs].value()), int(held[maxSubmit].value())
		}
	}
	return nil
}

// limitsEnforced reads AccountingStorageEnforce in scontrol show config.
func limitsEnforced(said survey.Sections) (bool, error) {
	out, err := said.Of("config")
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
		return false, fmt.Errorf("scontrol printed %q", gridsite.OneLine(out))
	}
	words := strings.Split(enforced, ",")
	return slices.Contains(words, "limits") || slices.Contains(words, "safe"), nil
}

// allowed returns the limits of a job in the partition, and the names of the partition's limits that it overrides;
// found is false if the user has no association for it. An association for the partition itself takes precedence over
// an association for all partitions. The job's QOS is the requested QOS or, failing that, the association's default,
// its only QOS, or Slurm's default.
func allowed(p *partition, options corral.BatchOptions, associations []association,
	qualities map[string]qualityOfService) (held policy, beyond []string, found bool) {
	of := func(partition string) int {
		return slices.IndexFunc(associations, func(a association) bool {
			return strings.EqualFold(a.account, options.Account) && a.partition == partition
		})
	}
	i := of(p.Name)
	if i < 0 {
		i = of("")
	}
	if i < 0 {
		return policy{}, nil, false
	}
	a := associations[i]
	name := strings.ToLower(options.QOS)
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

// limit applies further limits to the partition's own, some of which a QOS may override.
func (p *partition) limit(held policy, beyond []string) {
	if slices.Contains(beyond, "PartitionTimeLimit") {
		p.MaxWalltime = 0
	}
	if slices.Contains(beyond, "PartitionMaxNodes") {
		p.MaxNodes = 0
	}
	p.MaxWalltime = atMost(corral.Seconds(held[maxWalltime].value()), p.MaxWalltime)
	p.MaxNodes = atMost(int(held[maxNodes].value()), p.MaxNodes)
	p.Closed = held.closed()
}

// parseAssociations parses sacctmgr -nP show assoc: account, partition, the fields of parsePolicy, the list of QOS, the
// default QOS.
func parseAssociations(out string) ([]association, error) {
	var all []association
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(f) != 8 || f[0] == "" {
			return nil, fmt.Errorf("sacctmgr printed %q for an association", gridsite.OneLine(line))
		}
		p, err := parsePolicy(f[2:6], [4]string{"MaxJobs", "MaxSubmitJobs", "MaxWall", "MaxNodes"}, "account "+f[0])
		if err != nil {
			return nil, err
		}
		a := association{account: f[0], partition: f[1], policy: p, defaultQOS: f[7]}
		if f[6] != "" {
			a.qos = strings.Split(f[6], ",")
		}
		all = append(all, a)
	}
	return all, nil
}

// parseQualities parses sacctmgr -nP show qos: name, flags, then the fields of parsePolicy.
func parseQualities(out string) (map[string]qualityOfService, error) {
	all := map[string]qualityOfService{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(f) != 6 || f[0] == "" {
			return nil, fmt.Errorf("sacctmgr printed %q for a QOS", gridsite.OneLine(line))
		}
		p, err := parsePolicy(f[2:], [4]string{"MaxJobsPerUser", "MaxSubmitJobsPerUser", "MaxWall", "MaxNodes"},
			"QOS "+f[0])
		if err != nil {
			return nil, err
		}
		all[f[0]] = qualityOfService{policy: p, beyond: strings.Split(f[1], ",")}
	}
	return all, nil
}

// parsePolicy parses the limits on jobs, submitted jobs, walltime and TRES, whose names are given.
func parsePolicy(f []string, names [4]string, whose string) (limits policy, err error) {
	nodes := ""
	for one := range strings.SplitSeq(f[3], ",") {
		if n, ok := strings.CutPrefix(one, "node="); ok {
			nodes = n
		}
	}
	for i, text := range []string{f[0], f[1], f[2], nodes} {
		if text == "-1" || slices.Contains(noLimit, text) {
			continue
		}
		name := names[i] + " of " + whose
		n, err := count(text)
		most := int64(n)
		if i == maxWalltime {
			var d corral.Seconds
			d, err = spanOf(text)
			most = int64(d)
		}
		if err != nil {
			return policy{}, fmt.Errorf("%s: %w", name, err)
		}
		limits[i] = &limit{most, name}
	}
	return limits, nil
}
