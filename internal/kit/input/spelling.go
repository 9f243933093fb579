package input

// Nearest finds the word that was probably meant: an unknown command or setting is usually a misspelt known one. The
// distance between two words is the Levenshtein distance (1966): the minimum number of letters to insert, delete or
// replace.

// Nearest returns the element of among that was probably meant by name, or "". If two elements are equally near, it
// prefers an element with the same first letter as name.
func Nearest(among []string, name string) string {
	best, least := "", 6 // with more than two errors it is a different word
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

// distance returns the minimum number of letters to insert, delete or replace to turn a into b.
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
