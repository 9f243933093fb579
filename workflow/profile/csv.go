package profile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
)

// columns lists the columns of the CSV form. Each line contains one metric of one class:
//
//	transformation   name of the transformation, up to 1,000 bytes
//	level            level of its tasks in the workflow, from 0; empty: any level
//	metric           runtime_s, cpu_s, utilization, memory_bytes, read_bytes, written_bytes, input_bytes or
//	                 virtual_bytes
//	count            the number of tasks for which the metric was measured, at least 1
//	min, max         both empty: not known
//	mean
//	sd               the sample standard deviation; 0 for one task
//	sum              empty: not given; otherwise it must be mean × count within 1 %
//
// The columns from min to sum are in the unit of the metric.
var columns = []string{"transformation", "level", "metric", "count", "min", "max", "mean", "sd", "sum"}

// Limits on the size of a profile that is read.
const (
	maxCSVBytes  = 32 << 20
	maxCSVLines  = 200_000
	maxJSONBytes = 256 << 20
)

// WriteCSV writes the summary of each class, but neither runs nor samples, so that quantiles and models cannot be
// computed from the output.
func (p *Profile) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(columns) // out keeps the error
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, c := range p.Classes() {
		level := ""
		if c.Level != AllLevels {
			level = strconv.Itoa(c.Level)
		}
		for m := range metrics {
			s := c.stats[m]
			if s.Count == 0 {
				continue
			}
			least, most := "", ""
			if s.Ranged {
				least, most = number(s.Min), number(s.Max)
			}
			_ = out.Write([]string{
				c.Transformation, level, m.String(), strconv.FormatInt(s.Count, 10),
				least, most, number(s.Mean), number(s.SD), number(s.Sum()),
			})
		}
	}
	out.Flush()
	return out.Error()
}

// ReadCSV reads the output of WriteCSV, or a file in the same form from another source. name is the name of the input
// in errors. Errors are of kind Invalid, with the place name:line; they are returned for anything that does not match
// the description of columns, for a second line about the same metric of the same class, and for more than 32 MiB or
// 200,000 lines.
func ReadCSV(r io.Reader, name string) (*Profile, error) {
	p, n := New(), 0
	line, err := input.Table(r, maxCSVBytes, columns, func(record []string) error {
		if n++; n > maxCSVLines {
			return fmt.Errorf("the file has more than %d lines", maxCSVLines)
		}
		return p.addRecord(record)
	})
	if err != nil {
		return nil, workflow.Place{File: name, Line: line}.Errorf("%w", err)
	}
	return p, nil
}

func (p *Profile) addRecord(record []string) error {
	name, level := strings.Clone(record[0]), AllLevels
	if err := checkName(name); err != nil {
		return fmt.Errorf("transformation: %w", err)
	}
	if record[1] != "" {
		n, err := strconv.ParseUint(record[1], 10, 31)
		if err != nil {
			return fmt.Errorf("level: %.40q is not a number from 0", record[1])
		}
		level = int(n)
	}
	m, err := parseMetric(record[2])
	if err != nil {
		return err
	}
	s, err := parseStat(record[3:])
	if err != nil {
		return err
	}
	levels := p.kinds[name]
	if _, undivided := levels[AllLevels]; len(levels) > 0 && undivided != (level == AllLevels) {
		return fmt.Errorf("transformation %.100q has lines with a level and lines without", name)
	}
	if len(levels) == maxLevels && levels[level] == nil {
		return fmt.Errorf("transformation %.100q has more than %d levels", name, maxLevels)
	}
	c := p.class(name, level)
	if c.stats[m].Count > 0 {
		return fmt.Errorf("transformation %.100q has a second line for %s at the same level", name, m)
	}
	c.stats[m] = s
	return nil
}

// parseStat parses count, min, max, mean, sd and sum.
func parseStat(fields []string) (Stat, error) {
	count, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return Stat{}, fmt.Errorf("count: %.40q is not a whole number", fields[0])
	}
	s := Stat{Count: count, Ranged: fields[1] != ""}
	if s.Ranged != (fields[2] != "") {
		return Stat{}, errors.New("only one of min and max is given")
	}
	sum, given := 0.0, fields[5] != ""
	for _, x := range []struct {
		column, field string
		wanted        bool
		to            *float64
	}{
		{"min", fields[1], s.Ranged, &s.Min},
		{"max", fields[2], s.Ranged, &s.Max},
		{"mean", fields[3], true, &s.Mean},
		{"sd", fields[4], true, &s.SD},
		{"sum", fields[5], given, &sum},
	} {
		if !x.wanted {
			continue
		}
		if *x.to, err = strconv.ParseFloat(x.field, 64); err != nil {
			return Stat{}, fmt.Errorf("%s: %.40q is not a number", x.column, x.field)
		}
	}
	if err := s.validate(); err != nil {
		return Stat{}, err
	}
	if given && !(math.Abs(sum-s.Sum()) <= 0.01*s.Sum()) { // also true for NaN
		return Stat{}, fmt.Errorf("sum %g is not count × mean, which is %g", sum, s.Sum())
	}
	return s, nil
}
