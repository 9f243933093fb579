package main

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

//go:embed testdata/published.csv
var publishedCSV string

// A value identifies a published value: a quantity of an algorithm, in a panel of a figure at some x.
type value struct {
	figure, application, kind string
	x                         int
	algorithm, what           string
}

// readFigures returns the published values.
func readFigures() (map[value]float64, error) {
	r := csv.NewReader(strings.NewReader(publishedCSV))
	r.Comment = '#'
	all := map[value]float64{}
	for line := 0; ; line++ {
		row, err := r.Read()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading published figures: %w", err)
		}
		if line == 0 {
			continue // the names of the columns
		}
		x, err := strconv.Atoi(row[3])
		if err != nil {
			return nil, fmt.Errorf("reading published figures: %w", err)
		}
		if all[value{row[0], row[1], row[2], x, row[4], row[5]}], err = strconv.ParseFloat(row[6], 64); err != nil {
			return nil, fmt.Errorf("reading published figures: %w", err)
		}
	}
}
