// Package shell quotes words for a POSIX shell. All text for a shell, on a command line or in a script, must be quoted
// with this package, because an incompletely quoted word runs as a command.
//
// Any text without a NUL can be a word. Single quotes preserve all characters except a single quote, for which the
// quotes are closed, the character is written after a backslash, and the quotes are opened again.
package shell

import "strings"

// Quote returns a text as one word, always in quotes.
func Quote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Line returns the command line that consists of exactly these words.
func Line(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	return strings.Join(quoted, " ")
}

// plain are the characters without a special meaning in a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+@%"

// Legible returns a text as one word for people to read, quoted only if necessary.
func Legible(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return Quote(word)
}
