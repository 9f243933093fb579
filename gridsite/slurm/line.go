package slurm

import (
	"strings"
	"unicode"
)

// A site option is a line of a batch script that sbatch parses like its own arguments: words between blanks, with
// quotes and backslashes as in a shell. Each word is an option that may be abbreviated, or a group of one-letter
// options. The code in this file only checks whether an option would make sbatch create anything other than one job;
// all other checks are left to the site.

// splitting are the shortest unambiguous prefixes of the long options with which sbatch does not queue one job on this
// cluster and return.
var splitting = []string{"ar", "te", "clusters"}

// letters are the short options of sbatch without a value, or with an optional value that follows directly. Further
// options may follow them in the same word.
const letters = "hHIkKOQsuvVWx"

// notOneJob returns the word of a line with which sbatch would create several jobs, no job, or a job elsewhere, or
// would wait for the job's end. It returns "" if the line has no such word. It also checks words that are the value of
// another option, so it may refuse more than necessary.
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

// splits reports whether a group of one-letter options makes sbatch create anything other than one job. The group ends
// with the first option that requires a value: the rest of the word is this value.
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

// words splits a line as sbatch does. Quotes of either kind protect blanks and are removed, even within a word; a
// backslash makes the next character literal. An unclosed quote extends to the end.
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
