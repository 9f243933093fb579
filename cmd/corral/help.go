package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral/internal/version"
)

// helpWidth is the width that help is laid out for: a terminal as narrow as they come.
const helpWidth = 80

// exitCodes ends every command's help; the codes are those of api.ExitCode.
const exitCodes = `
EXIT CODES
    0  done                       5  refused: who you are, or a policy
    1  the operation failed       6  no answer or outcome unknown: repeat it
    2  usage, or invalid input  124  a wait timed out
    3  cannot be had as asked   130  interrupted
    4  not found                143  terminated
`

// examples heads the examples in a command's description.
const examples = "\n\nEXAMPLE\n"

// explained is the description of a command: what there is to say beyond its usage line, and an
// example, which every command has.
func explained(text, example string) string {
	return text + examples + "  " + strings.ReplaceAll(example, "\n", "\n  ")
}

// printHelp explains the command at the end of path, or the program if path is empty.
func printHelp(w io.Writer, app *cli.App, path []*cli.Command) {
	h := &helpPage{}
	c := &cli.Command{Usage: app.Usage, Subcommands: app.Commands, Description: explained("", "corral demo\ncorral up && corral glidein create --site local --hosts 2 --wait")}
	name := app.Name
	for _, c = range path {
		name += " " + c.Name
	}
	h.heading(name, c)
	h.commands(c.Subcommands)
	h.flags("FLAGS", c.Flags)
	h.flags("FLAGS OF EVERY COMMAND, BEFORE OR AFTER IT", slices.Concat(app.Flags, []cli.Flag{
		&cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "explain the command"},
	}))
	h.b.WriteString(exitCodes)
	io.WriteString(w, h.b.String())
}

// A helpPage is help under construction.
type helpPage struct{ b strings.Builder }

func (h *helpPage) heading(name string, c *cli.Command) {
	usage := name
	switch {
	case len(c.Subcommands) > 0:
		usage += " COMMAND"
	case c.ArgsUsage != "":
		usage += " " + c.ArgsUsage
	}
	if len(c.Flags) > 0 {
		usage += " [FLAGS]"
	}
	fmt.Fprintf(&h.b, "%s: %s\n\nUSAGE\n  %s\n", name, c.Usage, usage)
	text, example, _ := strings.Cut(c.Description, examples)
	if text != "" {
		h.b.WriteString("\n")
		for line := range strings.Lines(text) {
			h.b.WriteString(strings.Join(wrapped(strings.TrimSpace(line), helpWidth), "\n") + "\n")
		}
	}
	if example != "" {
		h.b.WriteString(examples[1:] + example + "\n")
	}
}

func (h *helpPage) commands(all []*cli.Command) {
	for i, c := range all {
		if i == 0 || c.Category != all[i-1].Category {
			heading := "COMMANDS"
			if c.Category != "" {
				heading = strings.ToUpper(c.Category)
			}
			fmt.Fprintf(&h.b, "\n%s\n", heading)
		}
		h.entry("  "+c.Name, 14, c.Usage)
	}
}

func (h *helpPage) flags(heading string, flags []cli.Flag) {
	if len(flags) == 0 {
		return
	}
	fmt.Fprintf(&h.b, "\n%s\n", heading)
	for _, f := range flags {
		head, text := described(f.(cli.DocGenerationFlag))
		h.entry("  "+head, 22, text)
	}
}

// entry writes head, and text in a column of its own from indent on.
func (h *helpPage) entry(head string, indent int, text string) {
	lines := wrapped(text, helpWidth-indent)
	if len(head)+2 > indent {
		h.b.WriteString(head + "\n")
		head = ""
	}
	for _, line := range lines {
		fmt.Fprintf(&h.b, "%-*s%s\n", indent, head, line)
		head = ""
	}
}

// described returns how a flag is written, and what it means with its default and its variable.
func described(f cli.DocGenerationFlag) (head, text string) {
	names := f.Names()
	head = "--" + names[0]
	if len(names[0]) == 1 {
		head = "-" + names[0]
	}
	if len(names) > 1 {
		head = "-" + names[1] + ", " + head
	}
	text = f.GetUsage()
	before, rest, quoted := strings.Cut(text, "`")
	placeholder, after, _ := strings.Cut(rest, "`")
	if quoted {
		text = before + placeholder + after
	}
	if f.TakesValue() {
		if !quoted {
			placeholder = strings.ToUpper(names[0])
		}
		head += " " + placeholder
		if d := plainDefault(f); d != "" && !strings.Contains(text, "default") {
			text += " (default: " + d + ")"
		}
	}
	if vars := f.GetEnvVars(); len(vars) > 0 {
		text += " [$" + strings.Join(vars, ", $") + "]"
	}
	return head, text
}

// plainDefault is a flag's default value as one writes it, nothing if that says nothing.
func plainDefault(f cli.DocGenerationFlag) string {
	d := short(strings.Trim(f.GetDefaultText(), `"`))
	if d == "0" || d == "0s" || d == "false" || d == "[]" {
		return ""
	}
	return d
}

// wrapped breaks text into lines of at most width characters.
func wrapped(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len([]rune(*last))+1+len([]rune(word)) > width:
			lines = append(lines, word)
		default:
			*last += " " + word
		}
	}
	return lines
}

func helpCommand(p *printer, app *cli.App) *cli.Command {
	return &cli.Command{
		Name: "help", Category: setUp, Usage: "explain a command", ArgsUsage: "[COMMAND]…",
		Description: explained("", "corral help glidein create"),
		Action: func(c *cli.Context) error {
			var path []*cli.Command
			among, name := app.Commands, app.Name
			for _, word := range c.Args().Slice() {
				i := slices.IndexFunc(among, func(c *cli.Command) bool { return c.HasName(word) })
				if i < 0 {
					return unknownCommand(name, among, word)
				}
				path, name, among = append(path, among[i]), name+" "+word, among[i].Subcommands
			}
			printHelp(p.out, app, path)
			return nil
		},
	}
}

func versionCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "version", Category: setUp, Usage: "print the version of this program",
		Description: explained("", "corral version"),
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			if p.format != formTable {
				return p.encode(map[string]string{"version": version.String()})
			}
			_, err := fmt.Fprintln(p.out, "corral", version.String())
			return err
		},
	}
}

// nearest returns the name among commands that was probably meant by name, or "".
func nearest(among []*cli.Command, name string) string {
	best, least := "", 3 // more than two slips is another word
	for _, c := range among {
		if d := distance(c.Name, name); d < least && d <= (len(c.Name)+1)/2 {
			best, least = c.Name, d
		}
	}
	return best
}

// distance is how many letters to put in, leave out or change to make b of a.
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
