package cli

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// Flags that several commands share. Each command has its own copies, because the parser stores values in them.

// keyFlag is a flag for every command that creates an object: a script that repeats the command with the same key does
// not create a second object.
func keyFlag() cli.Flag {
	return &cli.StringFlag{
		Name:  "key",
		Usage: "idempotency `KEY`: repeating the command with the same key has no further effect and prints the same",
		// This function is called before the action of the command.
		Action: func(_ *cli.Context, key string) error { return api.CheckKey("--key", key) },
	}
}

// allFlag is a flag for every command that prints a list.
func allFlag() cli.Flag {
	return &cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "include deleted ones"}
}

// ownerFlag restricts a list to one owner. Only administrators need this flag, because other users see only their own
// objects.
func ownerFlag() cli.Flag {
	return &cli.StringFlag{Name: "owner", Usage: "only those of `USER`, for administrators"}
}

// labelsFlag is a flag that labelsOf reads.
func labelsFlag(name, usage string) cli.Flag {
	return &cli.StringSliceFlag{Name: name, Usage: usage, Action: func(_ *cli.Context, pairs []string) error {
		_, err := parseLabels(dashed(name), pairs)
		return err
	}}
}

// labelFlag sets labels of a new object; filterFlag selects objects by their labels.
func labelFlag() cli.Flag { return labelsFlag("label", "give it the label `K=V`; may be repeated") }
func filterFlag() cli.Flag {
	return labelsFlag("l", "only those with the label `K=V`; may be repeated")
}

// labelsOf returns the labels given to a flag, which has already checked them.
func labelsOf(c *cli.Context, name string) map[string]string {
	m, _ := parseLabels("", c.StringSlice(name))
	return m
}

// waitFlag, noWaitFlag and timeoutFlag define how long a command waits; checkWait checks their combination.
func waitFlag(until string) cli.Flag {
	return &cli.BoolFlag{Name: "wait", Usage: "return when " + until}
}

func noWaitFlag() cli.Flag {
	return &cli.BoolFlag{Name: "no-wait", Usage: "return at once"}
}

func timeoutFlag() cli.Flag {
	return secondsFlag("timeout", 0, "stop waiting after `D`, with exit code 124")
}

func siteFlag() cli.Flag {
	return &cli.StringFlag{Name: "site", Aliases: []string{"s"}, Usage: "`SITE`, by name or id"}
}

func clusterFlag() cli.Flag {
	return &cli.StringFlag{Name: "cluster", Aliases: []string{"c"}, EnvVars: []string{"CORRAL_CLUSTER"},
		Usage: "personal `CLUSTER`, by name or id (default: default)"}
}

// checkWait checks --timeout, which requires a wait: some commands wait with --wait, others unless --no-wait is given,
// and a few always.
func checkWait(c *cli.Context) error {
	noWait, d := c.Bool("no-wait"), c.Duration("timeout")
	asked := lookup(c.Command.Flags, "wait") != nil && lookup(c.Command.Flags, "no-wait") == nil
	switch {
	case c.Bool("wait") && noWait:
		return corral.ErrorAt(corral.Invalid, "--wait", "cannot be used with --no-wait")
	case d < 0:
		return corral.ErrorAt(corral.Invalid, "--timeout", "%s is negative", d)
	case d > 0 && noWait:
		return corral.ErrorAt(corral.Invalid, "--timeout", "cannot be used with --no-wait")
	case d > 0 && asked && !c.Bool("wait") && !c.Bool("progress"):
		return corral.ErrorAt(corral.Invalid, "--timeout", "requires --wait")
	}
	return nil
}

// parseLabels reads the k=v pairs given to the flag that messages call flag. If a key has several values, the last one
// is used.
func parseLabels(flag string, pairs []string) (map[string]string, error) {
	m := map[string]string{}
	for _, kv := range pairs {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, corral.ErrorAt(corral.Invalid, flag, "%q is not k=v", kv)
		}
		m[k] = v
	}
	return m, nil
}

// A sizeUnit is a unit of memory sizes.
type sizeUnit struct {
	name string
	mib  float64
}

var sizeUnits = []sizeUnit{
	{"KiB", 1. / (1 << 10)}, {"MiB", 1}, {"GiB", 1 << 10}, {"TiB", 1 << 20},
	{"kB", 1e3 / (1 << 20)}, {"MB", 1e6 / (1 << 20)}, {"GB", 1e9 / (1 << 20)}, {"TB", 1e12 / (1 << 20)},
}

// parseMiB reads a size such as 4GiB or 512MiB and returns the number of mebibytes, rounded up, so that a request for
// 1.5MB receives at least that amount. An empty s yields 0, while 0 with a unit is an error. place names the input in
// the error.
func parseMiB(place, s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	i := slices.IndexFunc(sizeUnits, func(u sizeUnit) bool { return strings.HasSuffix(s, u.name) })
	if i < 0 {
		return 0, notSize(place, s)
	}
	number := strings.TrimSuffix(s, sizeUnits[i].name)
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || strings.Trim(number, "0123456789.") != "" || n*sizeUnits[i].mib > math.MaxInt32 || n == 0 {
		return 0, notSize(place, s)
	}
	return int(math.Ceil(n * sizeUnits[i].mib)), nil
}

// notSize returns the error for a text that is not a size.
func notSize(place, s string) error {
	return corral.ErrorAt(corral.Invalid, place, "%q is not a size such as 512MiB or 4GiB", s)
}
