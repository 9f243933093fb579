package slurm

import (
	"strings"
	"unicode"
)

// A site option is a line of a batch script that sbatch reads as it reads its own arguments: words between blanks, with
// quotes and backslashes as in a shell, each an option that may be cut short, or several options of one letter in a
// row. What is looked for here is only whether one of them would make something else than one job; all else is the
// site's.

// splitting are the long options with which sbatch does not queue one job on this cluster and return, as far as they
// must be written for sbatch to know them.
var splitting = []string{"ar", "te", "clusters"}

// letters are the short options of sbatch that take no value, or only one that follows at once: what comes after one of
// them may be another option.
const letters = "hHIkKOQsuvVWx"

// notOneJob returns the word of a line with which sbatch would make several jobs, none, or one elsewhere, or would not
// return before the job has ended; empty if there is none. Words that are the value of another option are looked at as
// well: the line is refused rather than understood.
func notOneJob(line string) string {
	line, isOption := strings.CutPrefix(line, directive)
	if !isOption && strings.HasPrefix(line, "#") {
		return ""
	}
	for _, word := range words(line) {
		long, isLong := strings.CutPrefix(word, "--")
		name, _, _ := strings.Cut(long, "=")
		short, isShort := strings.CutPrefix(word, "-")
		switch {
		case word == "hetjob", word == "packjob":
			return word
		case isLong:
			for _, s := range splitting {
				if strings.HasPrefix(name, s) {
					return word
				}
			}
			if name == "wait" {
				return word
			}
		case isShort && splits(short):
			return word
		}
	}
	return ""
}

// splits reports whether options of one letter that stand in a row make something else than one job. The row ends with
// the first that takes a value, which is the rest of the word.
func splits(row string) bool {
	for _, letter := range row {
		switch {
		case strings.ContainsRune("aMW", letter):
			return true
		case !strings.ContainsRune(letters, letter):
			return false
		}
	}
	return false
}

// words splits a line as sbatch does. Quotes of either kind hold blanks together and are dropped, also in the middle of
// a word; a backslash takes its meaning from the character after it. A quote that is not closed holds to the end.
func words(line string) []string {
	var all []string
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			begun, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			begun, quote = true, r
		case quote == 0 && unicode.IsSpace(r):
			if begun {
				all = append(all, word.String())
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	if begun {
		all = append(all, word.String())
	}
	return all
}
