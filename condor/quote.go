package condor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// The functions of this file format and parse values of HTCondor's submit descriptions that have their own syntax:
// those of arguments and environment, and dollar signs in any value.
//
// Both have an old syntax, which is only parsed, and a new one between double quotes. The new one has words separated
// by blanks; single quotes protect blanks, and either kind of quote is escaped by doubling it.

// Word formats a word of the new syntax, in single quotes if a blank or a quote would otherwise end it. A word cannot
// contain a newline.
func Word(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t'") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// Words puts words between the double quotes of the new syntax, and makes their dollar signs literal.
func Words(words string) string {
	return `"` + Literal(strings.ReplaceAll(words, `"`, `""`)) + `"`
}

// Literal makes the dollar signs of a value literal: single ones for condor_submit, and double ones, which would become
// a lookup in the worker's ad, for the schedd.
func Literal(s string) string {
	return strings.NewReplacer("$$", "$$(DOLLARDOLLAR)", "$", "$(DOLLAR)").Replace(s)
}

// Arguments splits the value of arguments. In the old syntax the only escape is \".
func Arguments(value string) ([]string, error) {
	if strings.HasPrefix(value, `"`) {
		inside, err := unquote(value)
		var args []string
		if err == nil {
			args, err = words(inside)
		}
		return args, wrap.Errorf(err, "arguments")
	}
	if strings.Contains(strings.ReplaceAll(value, `\"`, ""), `"`) {
		return nil, errors.New(`arguments: a double quote in the middle has no backslash`)
	}
	return strings.Fields(strings.ReplaceAll(value, `\"`, `"`)), nil
}

// Environment splits the value of environment: NAME=VALUE, separated by semicolons in the old syntax.
func Environment(value string) (map[string]string, error) {
	var pairs []string
	if strings.HasPrefix(value, `"`) {
		inside, err := unquote(value)
		if err == nil {
			pairs, err = words(inside)
		}
		if err != nil {
			return nil, fmt.Errorf("environment: %w", err)
		}
	} else {
		pairs = strings.Split(value, ";")
	}
	env := make(map[string]string)
	for _, pair := range pairs {
		name, v, ok := strings.Cut(pair, "=")
		switch name = strings.TrimSpace(name); {
		case strings.TrimSpace(pair) == "":
		case !ok || name == "":
			return nil, fmt.Errorf("environment: %.40q is not NAME=VALUE", pair)
		default:
			env[name] = v
		}
	}
	return env, nil
}

// unquote returns the text between the double quotes of the new syntax.
func unquote(value string) (string, error) {
	inside := value[1:]
	if !strings.HasSuffix(inside, `"`) {
		return "", errors.New("the double quote that ends it is missing, or something follows it")
	}
	inside = inside[:len(inside)-1]
	if strings.Contains(strings.ReplaceAll(inside, `""`, ""), `"`) {
		return "", errors.New("a double quote in the middle is not doubled")
	}
	return strings.ReplaceAll(inside, `""`, `"`), nil
}

// words splits text at blanks outside single quotes, within which two single quotes represent one.
func words(text string) ([]string, error) {
	var all []string
	var word strings.Builder
	quoted, begun := false, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\'' && quoted && i+1 < len(text) && text[i+1] == '\'':
			word.WriteByte('\'')
			i++
		case c == '\'':
			quoted, begun = !quoted, true
		case !quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			if begun {
				all = append(all, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if quoted {
		return nil, errors.New("a single quote has no end")
	}
	if begun {
		all = append(all, word.String())
	}
	return all, nil
}
