// Package shell writes words of a POSIX shell. Whatever reaches a shell, on a command line or in a script, is written
// here and nowhere else, since a word that is quoted by halves runs as a command.
//
// Any text without a NUL can be a word. Single quotes keep everything in them as it is but a single quote, for which
// they are closed, the quote is written behind a backslash, and they are opened again.
package shell

import "strings"

// Quote writes a text as one word, always in quotes.
func Quote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Line writes the command line that stands for exactly these words.
func Line(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	return strings.Join(quoted, " ")
}

// plain are the characters that mean nothing to a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+@%"

// Legible writes a text as one word for people to read: without quotes where none are needed.
func Legible(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return Quote(word)
}
