package cli

// usage shows the core-hours that pilots held, and how they were used. corrald computes the sums; the client prints
// them as a table, or as CSV for other programs.

import (
	"cmp"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral/api"
)

func (p *printer) usageCommand() *cli.Command {
	return &cli.Command{
		Name: "usage", Category: resources,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "since", Usage: "start at `TIME`, such as yesterday 09:00, or a duration ago, " +
				"such as 168h (default: with the first pilot)"},
			&cli.StringFlag{Name: "until", Usage: "end at `TIME`, likewise (default: now)"},
			&cli.StringFlag{Name: "by", Value: "user,site,workflow",
				Usage: "a line for each of `WHAT`, separated by commas"},
			&cli.BoolFlag{Name: "csv", Usage: "print a table for other programs"},
		},
		Action: func(c *cli.Context) error {
			var choice api.UsageChoice
			var err error
			now := time.Now()
			if choice.Since, err = timeOrAgo("--since", c.String("since"), now); err != nil {
				return err
			}
			if choice.Until, err = timeOrAgo("--until", c.String("until"), now); err != nil {
				return err
			}
			choice.By = strings.Split(c.String("by"), ",")
			cl, err := connect(c)
			if err != nil {
				return err
			}
			u, err := cl.Usage(c.Context, choice)
			if err != nil {
				return err
			}
			if c.Bool("csv") {
				return writeUsage(p.out, u)
			}
			return p.showUsage(u)
		},
	}
}

// usageColumns returns the columns of a table grouped by fields: one column for each field, and columns for the hours.
func usageColumns(by []string) []column[api.UsageRow] {
	fields := map[string]func(api.UsageRow) any{
		"user":     func(r api.UsageRow) any { return r.User },
		"site":     func(r api.UsageRow) any { return r.Site },
		"workflow": func(r api.UsageRow) any { return r.Workflow },
	}
	var columns []column[api.UsageRow]
	for _, name := range by {
		columns = append(columns, column[api.UsageRow]{name, fields[name]})
	}
	for _, c := range []struct {
		name string
		of   func(api.UsageHours) float64
	}{
		{"allocated", func(h api.UsageHours) float64 { return h.Allocated }},
		{"used", func(h api.UsageHours) float64 { return h.Used }},
		{"idle", func(h api.UsageHours) float64 { return h.Idle }},
		{"lost", func(h api.UsageHours) float64 { return h.Lost }},
	} {
		cell := func(r api.UsageRow) any { return hoursText(c.of(r.UsageHours)) }
		columns = append(columns, column[api.UsageRow]{c.name, cell})
	}
	return columns
}

// hoursText formats core-hours with two decimals, or with three significant digits if they are less than one.
func hoursText(h float64) string {
	if h < 1 {
		return strconv.FormatFloat(h, 'g', 3, 64)
	}
	return strconv.FormatFloat(h, 'f', 2, 64)
}

// showUsage prints a line for each row, followed by the total.
func (p *printer) showUsage(u api.Usage) error {
	l := listing[api.UsageRow]{
		id:      func(r api.UsageRow) string { return strings.Join(usageKey(r, u.By, "-"), " ") },
		columns: usageColumns(u.By),
		none:    "no pilot held processors in that time",
	}
	if !p.forPeople() {
		if p.quiet {
			return l.list(p, u.Items)
		}
		return p.encode(u)
	}
	if err := l.list(p, u.Items); err != nil || len(u.Items) == 0 {
		return err
	}
	h := u.Total.UsageHours
	p.say("%s core-hours allocated: %s used, %s idle, %s lost", hoursText(h.Allocated), hoursText(h.Used),
		hoursText(h.Idle), hoursText(h.Lost))
	return nil
}

// usageKey returns the fields by which a row is grouped; none replaces an empty field.
func usageKey(r api.UsageRow, by []string, none string) []string {
	of := map[string]string{"user": r.User, "site": r.Site, "workflow": r.Workflow}
	var fields []string
	for _, name := range by {
		fields = append(fields, cmp.Or(of[name], none))
	}
	return fields
}

// writeUsage writes rows as CSV with a header.
func writeUsage(w io.Writer, u api.Usage) error {
	out := csv.NewWriter(w)
	header := slices.Concat(u.By, []string{"allocated_core_hours", "used_core_hours", "idle_core_hours",
		"lost_core_hours"})
	lines := [][]string{header}
	exact := func(h float64) string { return strconv.FormatFloat(h, 'f', -1, 64) }
	for _, r := range u.Items {
		h := []string{exact(r.Allocated), exact(r.Used), exact(r.Idle), exact(r.Lost)}
		lines = append(lines, append(usageKey(r, u.By, ""), h...))
	}
	return out.WriteAll(lines)
}
