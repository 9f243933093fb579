package notation

import (
	"slices"
	"strings"
)

// ParseExport reads what follows --export: ALL, NONE, NIL, or a list of NAME and NAME=VALUE with ALL among them or not.
// A value with a comma in it is quoted, and keeps its quotes.
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
		case name == "": // a comma too many
		case set: // the caller need not have it
			e.Set = append(e.Set, token)
		case strings.EqualFold(token, "ALL"):
			e.All = true
		default:
			e.Names = append(e.Names, token)
		}
	}
	return e
}

// splitQuoted yields the parts of a list between its commas, of which quotes may hold some.
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

// Environment returns what a job gets of the caller's environment. Variables that begin with SLURM_ go along in any
// case, as sbatch has it.
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
