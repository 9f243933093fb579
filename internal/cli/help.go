package cli

// Help is text in a file beside the code of each noun, such as site_help.txt. For each command the file contains a
// heading with the command's arguments, a one-line summary, the details, and examples. checkLine counts the same
// arguments and completion completes them, so help cannot promise arguments that the command does not accept.
//
// We lay out help ourselves because package cli does not wrap the explanation of a flag within its column, so that
// lines would be longer than a terminal's.

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral/internal/kit/version"
	"github.com/corral-pilot/corral/workflow/formats"
)

// helpWidth is the width of help in characters: the width of the narrowest common terminal.
const helpWidth = 80

// exitCodes is the last section of the help of every command; the codes are those of api.ExitCode.
const exitCodes = `
EXIT CODES
    0  done                       5  refused: who you are, or a policy
    1  the operation failed       6  no answer or outcome unknown: repeat it
    2  usage, or invalid input  124  a wait timed out
    3  cannot be had as asked   130  interrupted
    4  not found                143  terminated
    7  done, but a given goal was missed
`

//go:embed help.txt *_help.txt
var helpFiles embed.FS

// manual returns the sections of all help files. It reads the files only once, although every command looks up its
// section.
var manual = sync.OnceValue(func() []string {
	var sections []string
	files, _ := helpFiles.ReadDir(".") // errors are unreachable, because the files are part of the program
	for _, f := range files {
		text, _ := helpFiles.ReadFile(f.Name())
		sections = append(sections, strings.Split(string(text), "# ")[1:]...)
	}
	return sections
})

// describe fills in the arguments, usage and description of a command, such as corral site show, from its help text.
func describe(name string, c *cli.Command) {
	for _, section := range manual() {
		heading, rest, _ := strings.Cut(section, "\n")
		arguments, ok := strings.CutPrefix(heading, name)
		if !ok || arguments != strings.ToUpper(arguments) { // it is the heading of a verb of this noun
			continue
		}
		c.ArgsUsage = strings.TrimSpace(arguments)
		c.Usage, c.Description, _ = strings.Cut(rest, "\n")
		formats := strings.Join(formats.Names(), "\n  ")
		c.Description = strings.Replace(strings.TrimRight(c.Description, "\n"), "FORMATS", formats, 1)
	}
}

// printHelp explains the command at the end of path, or the program if path is empty: its usage, its purpose, its
// verbs, its flags with their defaults, and the exit codes, which all commands share.
func printHelp(w io.Writer, app *cli.App, path []*cli.Command) {
	name, c := app.Name, &cli.Command{Subcommands: app.Commands}
	describe(name, c)
	for _, c = range path {
		name += " " + c.Name
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\nUSAGE\n%s%s\n", name, c.Usage, synopsis(name, c), c.Description)
	for i, sub := range c.Subcommands {
		if sub.Hidden {
			continue
		}
		if i == 0 || sub.Category != c.Subcommands[i-1].Category {
			fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(cmp.Or(sub.Category, "commands")))
		}
		helpEntry(&b, "  "+sub.Name, 14, sub.Usage)
	}
	helpFlags(&b, "FLAGS", c.Flags)
	helpFlags(&b, "FLAGS OF EVERY COMMAND, BEFORE OR AFTER IT", append(slices.Clone(app.Flags), cli.HelpFlag))
	io.WriteString(w, b.String()+exitCodes)
}

// synopsis returns the usage lines of a command, which are two if the command is both a verb and a noun.
func synopsis(name string, c *cli.Command) string {
	line, verbs := "  "+name, ""
	switch {
	case len(c.Subcommands) > 0 && c.ArgsUsage != "":
		verbs = "  " + name + " COMMAND\n"
	case len(c.Subcommands) > 0:
		line += " COMMAND"
	}
	if c.ArgsUsage != "" {
		line += " " + c.ArgsUsage
	}
	if len(c.Flags) > 0 {
		line += " [FLAGS]"
	}
	return line + "\n" + verbs
}

// helpFlags writes a heading and an entry for each flag, or nothing if there are no flags.
func helpFlags(b *strings.Builder, heading string, flags []cli.Flag) {
	if len(flags) > 0 {
		fmt.Fprintf(b, "\n%s\n", heading)
	}
	for _, f := range flags {
		head, text := flagHelp(f.(cli.DocGenerationFlag))
		helpEntry(b, "  "+head, 22, text)
	}
}

// helpEntry writes head, followed by text in a column that begins at indent. A head that is too long for the first
// column is written on its own line.
func helpEntry(b *strings.Builder, head string, indent int, text string) {
	if len(head)+2 > indent {
		b.WriteString(head + "\n")
		head = ""
	}
	line := fmt.Sprintf("%-*s", indent-1, head)
	for _, word := range strings.Fields(text) {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > helpWidth {
			b.WriteString(line + "\n")
			line = strings.Repeat(" ", indent-1)
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

// flagHelp returns the forms of a flag, the short one first, and its meaning with the default and the environment
// variable.
func flagHelp(f cli.DocGenerationFlag) (head, text string) {
	for _, name := range f.Names() {
		head = dashed(name) + ", " + head
	}
	head = strings.TrimSuffix(head, ", ")
	text = strings.ReplaceAll(f.GetUsage(), "`", "")
	if f.TakesValue() {
		head += " " + strings.Split(f.GetUsage(), "`")[1]
		value := short(strings.Trim(f.GetDefaultText(), `"`))
		if !slices.Contains([]string{"", "0", "0s", "[]"}, value) && !strings.Contains(text, "default") {
			text += " (default: " + value + ")"
		}
	}
	if vars := f.GetEnvVars(); len(vars) > 0 {
		text += " [$" + strings.Join(vars, ", $") + "]"
	}
	return head, text
}

// dashed returns a flag's name with its dashes.
func dashed(name string) string { return strings.Repeat("-", min(2, len(name))) + name }

// helpCommand prints the help of the command that its arguments name, like --help after the same words.
func (p *printer) helpCommand(app *cli.App) *cli.Command {
	return &cli.Command{
		Name: "help", Category: setUp,
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

// versionCommand prints the version of this program, not the version of corrald; doctor compares the two.
func (p *printer) versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Category: setUp,
		Action: func(c *cli.Context) error {
			if p.format != formTable {
				return p.encode(map[string]string{"version": version.String()})
			}
			_, err := fmt.Fprintln(p.out, "corral", version.String())
			return err
		},
	}
}
