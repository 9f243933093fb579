package slurm

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/survey"
)

// This file collects facts about the future: the maintenance periods of nodes, and the usage that the account still
// permits. Depending on PrivateData, Slurm hides these facts from ordinary users without an error, by omitting lines.
// Therefore missing facts are noted, with the word of PrivateData if it is the reason.

// addMaintenance adds the maintenance of nodes to the facts.
func addMaintenance(said survey.Sections, facts *corral.SiteFacts) {
	const what = "the maintenance schedule"
	out, err := said.Of("maintenance")
	if err == nil {
		facts.Maintenance, err = parseMaintenance(out)
	}
	switch {
	case err != nil:
		survey.Note(facts, what, fmt.Errorf("scontrol: %w", err))
	case len(facts.Maintenance) == 0 && hides(said, "reservations") != "":
		survey.Note(facts, what, fmt.Errorf("PrivateData hides reservations"))
	}
}

// hides returns the first of the words that is set in PrivateData.
func hides(said survey.Sections, words ...string) string {
	for _, set := range configured(said, "PrivateData") {
		if slices.Contains(words, set) {
			return set
		}
	}
	return ""
}

var reservation = regexp.MustCompile(`^ReservationName=(\S+) StartTime=(\d+) EndTime=(\d+) `)

// parseMaintenance parses lines of scontrol -o show reservation, with times in seconds since 1970. Each of these lines
// is followed by lines PARTITION|NODES with the number of the reservation's nodes in each partition.
func parseMaintenance(out string) ([]corral.Maintenance, error) {
	var all []corral.Maintenance
	var now corral.Maintenance
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if f := reservation.FindStringSubmatch(line); f != nil {
			from, err := strconv.ParseInt(f[2], 10, 48)
			to, err2 := strconv.ParseInt(f[3], 10, 48)
			if err != nil || err2 != nil || to < from {
				return nil, fmt.Errorf("it printed %q", gridsite.OneLine(line))
			}
			now = corral.Maintenance{Name: f[1], From: time.Unix(from, 0).UTC(), To: time.Unix(to, 0).UTC()}
			continue
		}
		queue, nodes, ok := strings.Cut(line, "|")
		n, err := strconv.ParseUint(nodes, 10, 31)
		if line != "" && (!ok || err != nil || now.Name == "") {
			return nil, fmt.Errorf("it printed %q", gridsite.OneLine(line))
		}
		if n > 0 {
			now.Queue, now.Nodes = queue, int(n)
			all = append(all, now)
		}
	}
	return all, nil
}

// addAllowance adds the remaining usage of the user's account to the facts, if Slurm keeps accounts and enforces their
// limits. This is the smallest remainder among those of the user in the account, of the account itself, and of the
// accounts above it.
func addAllowance(said survey.Sections, options corral.BatchOptions, facts *corral.SiteFacts) {
	const what = "the account's remaining allowance"
	if enforced, err := limitsEnforced(said); err != nil || !enforced { // noted elsewhere
		return
	}
	account := options.Account
	if account == "" {
		account, _ = said.Of("account")
	}
	out, err := said.Of("used")
	var lines []allowance
	if err == nil {
		lines, err = parseAllowances(out)
	}
	if err != nil {
		survey.Note(facts, what, fmt.Errorf("scontrol: %w", err))
		return
	}
	left, found := leftTo(account, options.Queue, lines)
	word := hides(said, "accounts", "usage", "users")
	switch {
	case found:
		facts.Allowance = left
	case word != "":
		survey.Note(facts, what, fmt.Errorf("PrivateData hides %s", word))
	default:
		survey.Note(facts, what, fmt.Errorf("scontrol does not list account %q", account))
	}
}

// An allowance is a line about an account, or about the user in an account: the permitted and the used cpu-minutes.
type allowance struct {
	user, account, parent string
	queue                 string // the only queue to which a user's line applies; empty: all
	limited               bool
	minutes, used         int64
}

var cpuMinutes = regexp.MustCompile(`(?:^|,)cpu=(?:N|(\d{1,15}))\((\d{1,15})\)`)

// parseAllowances parses USER|ACCOUNT|PARTITION|PARENT|GrpTRESMins. The ids of users and parents follow in parentheses.
func parseAllowances(out string) ([]allowance, error) {
	var all []allowance
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) == 1 && f[0] == "" {
			continue
		}
		if len(f) != 5 {
			return nil, fmt.Errorf("it printed %q", gridsite.OneLine(line))
		}
		n := cpuMinutes.FindStringSubmatch(f[4])
		if n == nil {
			return nil, fmt.Errorf("it printed %q", gridsite.OneLine(line))
		}
		a := allowance{account: f[1], queue: f[2], limited: n[1] != ""}
		a.user, _, _ = strings.Cut(f[0], "(")
		a.parent, _, _ = strings.Cut(f[3], "(")
		a.minutes, _ = strconv.ParseInt("0"+n[1], 10, 64) // digits, and few enough
		a.used, _ = strconv.ParseInt(n[2], 10, 64)
		all = append(all, a)
	}
	return all, nil
}

// leftTo returns the line with the smallest remainder on the path from the user in the account to the root account, or
// nil if no line on this path has a limit; found is false if no line is about the account itself. Lines about queues
// that the site does not use are ignored.
func leftTo(account, queues string, lines []allowance) (left *corral.Allowance, found bool) {
	users := true // the first round includes the user's own line
	for range lines {
		parent := ""
		for _, l := range lines {
			if !strings.EqualFold(l.account, account) || l.user != "" && !users {
				continue
			}
			if l.queue != "" && !slices.Contains(strings.Split(queues, ","), l.queue) {
				continue
			}
			if l.user == "" {
				parent, found = l.parent, true
			}
			if l.limited && (left == nil || l.minutes-l.used < left.CPUMinutes-left.Used) {
				left = &corral.Allowance{Account: l.account, CPUMinutes: l.minutes, Used: l.used}
			}
		}
		if parent == "" {
			break
		}
		account, users = parent, false
	}
	return left, found
}
