package input

// Nearest finds the word that was probably meant: a command or a setting that does not exist is most often one
// with a slip of the finger. The distance between two words is that of Levenshtein (1966): the least number of letters
// to put in, leave out or change.

// Nearest returns the one among names that was probably meant by name, or "". Of two that are as near it is the one
// that begins alike.
func Nearest(among []string, name string) string {
	best, least := "", 6 // more than two slips is another word
	for _, candidate := range among {
		d := 2 * distance(candidate, name)
		if candidate[:1] != name[:min(1, len(name))] {
			d++
		}
		if d < least && d/2 <= (len(candidate)+1)/2 {
			best, least = candidate, d
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
