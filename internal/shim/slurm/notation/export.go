package notation

import (
	"slices"
	"strings"
)

// ParseExport parses the argument of --export: ALL, NONE, NIL, or a list of NAME and NAME=VALUE, optionally with ALL. A
// value that contains a comma must be quoted; the quotes remain part of the value.
func ParseExport(text string) Export {
	switch strings.ToUpper(text) {
	case "", "ALL":
		return Export{All: true}
	case "NONE", "NIL":
		return Export{}
	}
	var e Export
	for token := range splitQuoted(text) {
		name, _, set := strings.Cut(token, "=")
		switch {
		case name == "": // an additional comma
		case set: // it need not be in the caller's environment
			e.Set = append(e.Set, token)
		case strings.EqualFold(token, "ALL"):
			e.All = true
		default:
			e.Names = append(e.Names, token)
		}
	}
	return e
}

// splitQuoted yields the parts of a comma-separated list; commas in quotes do not separate parts.
func splitQuoted(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start, quote := 0, byte(0)
		for i := range len(text) {
			switch c := text[i]; {
			case quote == 0 && (c == '\'' || c == '"'):
				quote = c
			case c == quote:
				quote = 0
			case c == ',' && quote == 0:
				if !yield(text[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(text[start:])
	}
}

// Environment returns the part of the caller's environment that a job receives. Like sbatch, it always includes
// variables that begin with SLURM_.
func (e Export) Environment(caller []string) []string {
	var out []string
	for _, entry := range caller {
		name, _, _ := strings.Cut(entry, "=")
		if e.All || strings.HasPrefix(name, "SLURM_") || slices.Contains(e.Names, name) {
			out = append(out, entry)
		}
	}
	for _, entry := range e.Set {
		name, _, _ := strings.Cut(entry, "=")
		out = slices.DeleteFunc(out, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		out = append(out, entry)
	}
	return out
}
