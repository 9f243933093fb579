package main

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
)

var (
	keyFlag     = &cli.StringFlag{Name: "key", Usage: "idempotency `KEY`: repeating the command with the same key does it once"}
	allFlag     = &cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "deleted ones too"}
	labelFlag   = &cli.StringSliceFlag{Name: "label", Usage: "`k=v`, may be repeated"}
	filterFlag  = &cli.StringSliceFlag{Name: "l", Usage: "only those with label `k=v`, may be repeated"}
	timeoutFlag = &cli.DurationFlag{Name: "timeout", Usage: "give up a wait after `D` with exit code 124 (0: never)"}
)

// parseLabels reads k=v pairs given to flag.
func parseLabels(c *cli.Context, flag string) (map[string]string, error) {
	m := map[string]string{}
	for _, kv := range c.StringSlice(flag) {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, corral.ErrorAt(corral.Invalid, "--"+flag, "%q is not k=v", kv)
		}
		m[k] = v
	}
	return m, nil
}

// parseMiB reads a size such as 4GiB or 512MiB and returns whole mebibytes.
func parseMiB(place, s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	units := map[string]float64{"MiB": 1, "GiB": 1 << 10, "TiB": 1 << 20, "MB": 1e6 / (1 << 20), "GB": 1e9 / (1 << 20)}
	for unit, factor := range units {
		number, ok := strings.CutSuffix(s, unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || n <= 0 || math.IsInf(n, 0) || n*factor > math.MaxInt32 {
			break
		}
		return int(math.Ceil(n * factor)), nil
	}
	return 0, corral.ErrorAt(corral.Invalid, place, "%q is not a size such as 512MiB or 4GiB", s)
}

// parseTime reads an RFC 3339 time; an empty s is the zero time.
func parseTime(place, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, corral.ErrorAt(corral.Invalid, place, "%q is not a time such as 2026-01-31T08:00:00Z", s)
	}
	return t.UTC(), nil
}

// parseID reads the id of a glidein or run.
func parseID[T ~int64](noun, s string) (T, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 {
		return 0, corral.ErrorAt(corral.Invalid, noun, "%q is not an id", s)
	}
	return T(n), nil
}
