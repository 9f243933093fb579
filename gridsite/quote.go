package gridsite

import "strings"

// Quote makes one word of a POSIX shell out of any string without NUL: everything that reaches a
// shell on a command line or in a script goes through here and nowhere else.
func Quote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// QuoteArgv makes a line for a POSIX shell that stands for exactly this argument vector.
func QuoteArgv(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = Quote(arg)
	}
	return strings.Join(words, " ")
}
