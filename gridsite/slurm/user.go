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

// A policy is what an association, or a QOS, of Slurm's accounting allows; nil means no limit.
type policy [4]*limit

// What a policy limits: the user's jobs that run, and those that wait or run; the time and the nodes of one job.
const (
	maxJobs = iota
	maxSubmit
	maxWalltime
	maxNodes
)

// A limit may be 0: then no job may start.
type limit struct {
	most int64
	name string // and whose it is
}

// value is the limit as facts of sites have it: 0 if there is none.
func (l *limit) value() int64 {
	if l == nil {
		return 0
	}
	return l.most
}

// over returns p with the limits of weaker where p has none: it is how Slurm goes from the QOS of a partition to that
// of the job, and to the association.
func (p policy) over(weaker policy) policy {
	for i := range p {
		p[i] = cmp.Or(p[i], weaker[i])
	}
	return p
}

// closed names the limit that keeps every job from starting; empty if none does.
func (p policy) closed() string {
	for _, l := range p {
		if l != nil && l.most == 0 {
			return l.name + " is 0"
		}
	}
	return ""
}

// An association lets the user submit in the name of an account, to one partition or to all. It has limits of its own,
// and says which QOS may be asked for and which one a job has that asks for none.
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

// addUser adds to the partitions and the facts what holds for the user with these options. It reads three tables of
// Slurm's accounting, in the order in which they depend on each other: is anything enforced, which QOS are there, which
// accounts has the user. Without accounting nothing is known; where its limits are not enforced, only that there must
// be the QOS, of which Slurm itself then says nothing.
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
			p.Closed = gridsite.OneLine(fmt.Sprintf("the user has no account %q for it", options.Account))
			continue
		}
		p.limit(held, beyond)
		if p.Name == options.Queue || options.Queue == "" && p.Default {
			facts.MaxJobs, facts.MaxSubmit = int(held[maxJobs].value()), int(held[maxSubmit].value())
		}
	}
	return nil
}

// limitsEnforced reads two lines of scontrol show config.
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
		return false, fmt.Errorf("scontrol said %q", gridsite.OneLine(out))
	}
	words := strings.Split(enforced, ",")
	return slices.Contains(words, "limits") || slices.Contains(words, "safe"), nil
}

// allowed returns what holds for a job in the partition, and which of the partition's own limits do not; found is false
// if the user has no association for it. An association with the partition itself goes before one for all partitions.
// The job's QOS is the one asked for, else the association's default, else its only one, else Slurm's.
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

// limit takes in what holds beside the partition's own limits, some of which a QOS may lift.
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

// parseAssociations reads sacctmgr -nP show assoc: account, partition, then what parsePolicy reads, all QOS, the
// default.
func parseAssociations(out string) ([]association, error) {
	var all []association
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(f) != 8 || f[0] == "" {
			return nil, fmt.Errorf("sacctmgr said %q of an association", gridsite.OneLine(line))
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

// parseQualities reads sacctmgr -nP show qos: name, flags, then what parsePolicy reads.
func parseQualities(out string) (map[string]qualityOfService, error) {
	all := map[string]qualityOfService{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(f) != 6 || f[0] == "" {
			return nil, fmt.Errorf("sacctmgr said %q of a QOS", gridsite.OneLine(line))
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

// parsePolicy reads limits of jobs, of submitted ones, of walltime, and of TRES, which have these names.
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
