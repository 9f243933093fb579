package notation

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// CheckScript returns sbatch's error for a text that is not a valid script.
func CheckScript(text string) error {
	first, _, _ := strings.Cut(text, "\n")
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("Batch script is empty!") // Slurm's wording, also below
	case !strings.HasPrefix(text, "#!"): // for example a program
		return errors.New("This does not look like a batch script.  The first\n" + // Slurm's wording
			"line must start with #! followed by the path to an interpreter.\nFor instance: #!/bin/sh")
	case strings.Contains(text, "\x00"):
		return errors.New("The Slurm controller does not allow scripts that\n" + // Slurm's wording
			"contain a NULL character '\\0'.")
	case strings.HasSuffix(first, "\r") || strings.Contains(text, "\r\n"):
		return errors.New("Batch script contains DOS line breaks (\\r\\n)\n" + // Slurm's wording
			"instead of expected UNIX line breaks (\\n).")
	}
	return nil
}

// Directives returns the words of each #SBATCH line of a script up to its first command, that is, the first line that
// is neither empty nor a comment. Errors name the line, in Slurm's wording.
func Directives(script string) ([][]string, error) {
	var list [][]string
	n := 0
	for line := range bytes.Lines([]byte(script)) {
		n++ // empty lines count, too
		line = bytes.TrimRight(line, "\n")
		rest, ok := bytes.CutPrefix(line, []byte("#SBATCH"))
		if ok && len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t') {
			words, err := splitWords(string(rest))
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			list = append(list, words)
			continue
		}
		if line = bytes.TrimLeft(line, " \t"); len(line) > 0 && line[0] != '#' {
			break
		}
	}
	return list, nil
}

// splitWords splits a line like sbatch: quotes of either kind protect blanks, a backslash protects the next character,
// and a # at the beginning of a word ends the line.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote, from := false, byte(0), 0 // from is the end of the last complete word
	end := func(at int) {
		if inWord {
			words = append(words, word.String())
			word.Reset()
			from = at
		}
		inWord = false
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote: // the closing quote
			quote = 0
		case c == '\\' && i+1 < len(line) && quote != '\'':
			i++
			word.WriteByte(line[i])
			inWord = true
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == ' ' || c == '\t':
			end(i)
		case c == '#' && !inWord:
			return words, nil
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("Unmatched `%c` in [%s]", quote, line[from:]) // Slurm's wording
	}
	end(len(line))
	return words, nil
}
