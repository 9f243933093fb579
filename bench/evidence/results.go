package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// results are the figures of a claim: rows with the same number of cells, the first of which contains the names of the
// columns.
type results [][]string

// add formats a row whose cells are separated by |, which no value contains.
func (t *results) add(format string, args ...any) {
	*t = append(*t, strings.Split(fmt.Sprintf(format, args...), "|"))
}

// show prints results as Markdown and writes them to NAME.csv, beside the plots. The cells are the same in both, so
// that a page that cites the file agrees with the terminal.
func (d desk) show(name string, t results) error {
	for k, row := range t {
		d.say("| %s |", strings.Join(row, " | "))
		if k == 0 {
			d.say("|%s", strings.Repeat("---|", len(row)))
		}
	}
	if d.out == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(d.out, name+".csv"))
	if err != nil {
		return err
	}
	if err := csv.NewWriter(f).WriteAll(t); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
