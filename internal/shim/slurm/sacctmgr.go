package slurm

// sacctmgr reports that the calling user may submit jobs: there are no accounts that could be changed.

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// An association is an account under which a user may submit jobs to a cluster.
type association struct {
	user, account, cluster string
	defaultAccount, admin  string // of the user; admin is "None" or one of Slurm's admin levels
}

// none is the value of a column of limits that do not exist.
var none = same[association]("")

// userColumns are the columns of "list user -s", in order.
var userColumns = []column[association]{
	named("User", 10, func(a association) string { return a.user }),
	named("Def Acct", 10, func(a association) string { return a.defaultAccount }),
	named("Admin", 9, func(a association) string { return a.admin }),
	named("Cluster", 10, func(a association) string { return a.cluster }),
	named("Account", 10, func(a association) string { return a.account }),
	named("Partition", 10, none), named("Share", 9, same[association]("1")), named("Priority", 10, none),
	named("MaxJobs", 7, none), named("MaxNodes", 8, none), named("MaxCPUs", 8, none), named("MaxSubmit", 9, none),
	named("MaxWall", 11, none), named("MaxCPUMins", 11, none), named("QOS", 20, same[association]("normal")),
	named("Def QOS", 9, none),
}

// userOnly is the number of columns that describe the user, and not an association.
const userOnly = 3

// sacctmgrOptions are the options of sacctmgr.
var sacctmgrOptions = notation.Command[query]{Name: "sacctmgr", Options: []option{
	{Names: "noheader|n", Set: noHeader},
	{Names: "parsable|p parsable2|P", Set: parsable},
	{Names: "associations|s", Set: notation.On(func(q *query) *bool { return &q.perAccount })},
	{Names: "help|h usage version|V", Set: other},
	{Names: "immediate|i oneliner|o quiet|Q readonly|r verbose|v"},
}}

// parseSacctmgr parses a command line of sacctmgr.
func parseSacctmgr(words []string) (*query, error) {
	q := &query{delimiter: "|"}
	return q, q.parse(sacctmgrOptions, words, "")
}

// listUsers runs a command line of sacctmgr: "list user [NAME...] [format=COLUMN%WIDTH,...]", with -n, -s, -p and -P.
// All other commands are unsupported.
func (q *query) listUsers(list []association) (string, error) {
	if len(q.rest) < 2 || !abbreviates(q.rest[0], "list", "show") || !abbreviates(q.rest[1], "users") {
		what := strings.TrimSpace("sacctmgr " + strings.Join(q.rest, " "))
		return "", &notation.Unsupported{What: what, Why: "it only lists users"}
	}
	formatted := false
	for _, word := range q.rest[2:] {
		key, value, assigned := strings.Cut(word, "=")
		switch {
		case !assigned: // a single name is a user
			q.users = append(q.users, word)
		case strings.EqualFold(key, "format"):
			q.columns, formatted = value, true
		case strings.HasPrefix("users", strings.ToLower(key)) || strings.HasPrefix("names", strings.ToLower(key)):
			q.users = append(q.users, strings.Split(value, ",")...)
		}
	}
	places, err := byNames(q.columns, "Unknown field '%s'", userColumns) // Slurm's wording
	if err != nil {
		return "", err
	}
	switch {
	case places == nil && formatted:
		return "", errors.New("Unknown field ''")
	case places == nil:
		places = inOrder(userColumns)
		if !q.perAccount {
			places = places[:userOnly]
		}
	}
	list = slices.DeleteFunc(slices.Clone(list), func(a association) bool {
		return len(q.users) > 0 && !slices.Contains(q.users, a.user)
	})
	if !q.perAccount { // one line for each user
		list = slices.CompactFunc(list, func(a, b association) bool { return a.user == b.user })
	}
	var b strings.Builder
	err = sheetOf(q, places).write(&b, q, "", list, time.Time{})
	return b.String(), err
}

// abbreviates reports whether a word is a prefix of one of the given words.
func abbreviates(word string, full ...string) bool {
	word = strings.ToLower(word)
	return len(word) > 2 && slices.ContainsFunc(full, func(one string) bool { return strings.HasPrefix(one, word) })
}

// sacctmgr lists the calling user.
func sacctmgr(c *call) error {
	q, err := parseSacctmgr(c.args)
	if err != nil {
		return err
	}
	if q.other != "" {
		return c.tellOther(q.other)
	}
	f, err := Found(c.at, os.Getenv)
	if err != nil {
		return err
	}
	who := currentUser().Name
	text, err := q.listUsers([]association{
		{user: who, account: who, cluster: f.Cluster, defaultAccount: who, admin: "None"},
	})
	fmt.Fprint(c.Out, text)
	return err
}
