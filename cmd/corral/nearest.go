package main

// A command that does not exist is most often one with a slip of the finger. The distance between two words is that of
// Levenshtein (1966): the least number of letters to put in, leave out or change.

import "github.com/urfave/cli/v2"

// nearest returns the name among commands that was probably meant by name, or "".
func nearest(among []*cli.Command, name string) string {
	best, least := "", 3 // more than two slips is another word
	for _, c := range among {
		if d := distance(c.Name, name); d < least && d <= (len(c.Name)+1)/2 {
			best, least = c.Name, d
		}
	}
	return best
}

// distance is how many letters to put in, leave out or change to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
