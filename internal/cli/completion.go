package cli

// Completion is dynamic: the shell runs this program with the words of the line so far (completeWord), and the program
// prints the possible completions of the last word. Commands and flags are taken from the same tree that executes them,
// the kinds of arguments from the help texts, and names and ids from corrald, if it answers within a second.

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/forecast"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/workflow/formats"
)

// completeWord is the first argument with which a shell's completion calls this program; the words of the command line
// follow, up to and including the word to complete.
const completeWord = "__complete"

// completions contains the scripts that connect the completion of each shell to this program. If the program prints no
// completions, the shell completes file names.
var completions = map[string]string{
	"bash": `_corral() {
	local IFS=$'\n'
	local found="$("${COMP_WORDS[0]}" ` + completeWord + ` "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)"
	COMPREPLY=($(compgen -W "$found" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o bashdefault -o default -F _corral corral
`,
	"zsh": `#compdef corral
_corral() {
	local -a found
	found=("${(@f)$("$words[1]" ` + completeWord + ` "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "$found[1]" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _corral corral
`,
	"fish": `function __corral_complete
	set -l words (commandline -opc)
	set -l found ($words[1] ` + completeWord + ` $words[2..-1] (commandline -ct) 2>/dev/null)
	if test (count $found) -gt 0
		printf '%s\n' $found
	else
		__fish_complete_path (commandline -ct)
	end
end
complete -c corral -f -a '(__corral_complete)'
`,
}

// shells returns the names of the shells for which a script exists.
func shells() []string { return []string{"bash", "zsh", "fish"} }

// completionCommand prints the script that a shell reads when it starts.
func (p *printer) completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion", Category: setUp,
		Action: func(c *cli.Context) error {
			shell := c.Args().First()
			script, ok := completions[shell]
			if !ok {
				return corral.ErrorAt(corral.Invalid, "shell", "%q is none of %s", shell, strings.Join(shells(), ", "))
			}
			_, err := fmt.Fprint(p.out, script)
			return err
		},
	}
}

// flagValues lists the values of flags that accept only a few values.
var flagValues = map[string][]string{
	"output": forms, "contact": {"local:", "ssh://"}, "kind": {string(corral.Embedded), string(corral.Condor)},
	"batch": corral.BatchSystemNames(), "head-batch": corral.BatchSystemNames(),
	"resubmit": {"never", "forever", "until="}, "broker": {"auto", "none", "ccb", "relay"},
	"slots": {"partitionable", "static"}, "inputs": {"copy", "link"}, "shell": shells(),
	"progress": progressForms, "trace": {corral.TraceIO, corral.TraceProcesses},
	"clustering": {"none", "horizontal=", "runtime=", "label", "vertical", "auto"},
	"objective":  wordsOf(plan.Objectives), "to": formats.Written(), "queue-policy": wordsOf(queue.Policies),
}

// verbValues lists the values of flags and arguments that differ between commands, keyed by the words of the command
// and the name of the flag or argument.
var verbValues = map[string][]string{
	"runs log file":    {"stdout", "stderr", "record.json", "trace.json", "pre", "post"},
	"glidein log file": {"stdout", "stderr", "report.json"},
	"runs tasks state": wordsOf(corral.TaskStates), "runs list state": wordsOf(corral.RunStates),
	"runs clean state":       wordsOf(corral.RunStates),
	"ensemble run algorithm": forecast.Algorithms,
	"plan algorithm":         append(wordsOf(plan.Algorithms), forecast.Algorithms...),
}

func wordsOf[T ~string](all []T) (words []string) {
	for _, w := range all {
		words = append(words, string(w))
	}
	return words
}

// complete prints the possible completions of the last of words, one per line.
func complete(ctx context.Context, app *cli.App, words []string, out io.Writer) {
	if len(words) == 0 {
		return
	}
	last := words[len(words)-1]
	l := parse(app, words[:len(words)-1])
	for _, candidate := range candidates(ctx, l, last) {
		if strings.HasPrefix(candidate, last) {
			fmt.Fprintln(out, candidate)
		}
	}
}

// candidates returns the possible next words of a line, whether or not they begin with last: values for the preceding
// flag, flags, commands or arguments.
func candidates(ctx context.Context, l *line, last string) (found []string) {
	switch {
	case l.wanting != nil:
		return valuesOf(ctx, l, l.wanting.Names()[0])
	case strings.HasPrefix(last, "-"):
		for _, f := range append(l.ownFlag, l.globalSet...) {
			for _, name := range f.Names() {
				found = append(found, dashed(name))
			}
		}
		return append(found, "--help", "-h")
	case len(l.commands) > 0 && len(l.positional) > 0:
		return nil // the command does not exist
	case len(l.commands) > 0:
		for _, c := range l.commands {
			if !c.Hidden {
				found = append(found, c.Name)
			}
		}
		return found
	}
	return argumentsOf(ctx, l)
}

// argumentsOf returns the possible next arguments of the command at the end of the line. The name of the argument in
// the help, such as SITE, is the kind of object to look up, so that completion works for a new verb as soon as the verb
// has help.
func argumentsOf(ctx context.Context, l *line) []string {
	kinds := strings.Fields(l.path[len(l.path)-1].ArgsUsage)
	if len(kinds) == 0 {
		return nil
	}
	last := kinds[len(kinds)-1]
	i := len(l.positional)
	if i >= len(kinds) && !strings.HasSuffix(last, "…") {
		return nil
	}
	kind := strings.Trim(kinds[min(i, len(kinds)-1)], "[]…")
	if kind == "ID" {
		kind = "GLIDEIN"
	}
	return valuesOf(ctx, l, strings.ToLower(kind))
}

// valuesOf returns the possible values of a flag or a kind of argument: a fixed list, or the objects of corrald.
func valuesOf(ctx context.Context, l *line, kind string) []string {
	var verb []string
	for _, c := range l.path {
		verb = append(verb, c.Name)
	}
	if known := verbValues[strings.Join(append(verb, kind), " ")]; known != nil {
		return known
	}
	if known := flagValues[kind]; known != nil {
		return known
	}
	return existing(ctx, l, kind)
}

// existing returns the names or ids of corrald's objects of a kind. If corrald does not answer within a second, it
// returns no names.
func existing(ctx context.Context, l *line, kind string) (found []string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	cl, err := connectionOf(l).connect(ctx)
	if err != nil {
		return nil // without corrald no names can be completed
	}
	defer cl.Close()
	if kind == "task" && len(l.positional) > 0 {
		return tasksOf(ctx, cl, l.positional[0])
	}
	return namesOf(ctx, cl, kind)
}

// tasksOf returns the ids of a run's tasks.
func tasksOf(ctx context.Context, cl *api.Client, run string) (found []string) {
	id, err := runs.key(runs.name, run)
	if err != nil {
		return nil
	}
	tasks, _ := cl.RunTasks(ctx, id)
	for _, t := range tasks {
		found = append(found, t.ID)
	}
	return found
}

// connectionOf returns the connection that a command line or, failing that, the environment describes.
func connectionOf(l *line) connection {
	value := func(flag, variable string) string {
		for i, word := range l.global {
			switch v, ok := strings.CutPrefix(word, flag+"="); {
			case ok:
				return v
			case word == flag && i+1 < len(l.global):
				return l.global[i+1]
			}
		}
		return os.Getenv(variable)
	}
	return connection{value("--server", serverVariable), value("--token-file", tokenFileVariable),
		value("--ca-file", caVariable)}
}

// namesOf requests the names or ids of the objects of a kind from corrald; it ignores errors and unknown kinds.
func namesOf(ctx context.Context, cl *api.Client, kind string) []string {
	switch kind {
	case "site":
		return idsOf(ctx, cl.Sites, siteTable.id)
	case "cluster":
		return idsOf(ctx, cl.Clusters, clusterTable.id)
	case "glidein":
		return idsOf(ctx, cl.Glideins, glideinTable.id)
	case "plan":
		return idsOf(ctx, cl.Plans, func(p corral.Plan) string { return fmt.Sprint(p.ID) })
	case "ensemble":
		return idsOf(ctx, cl.Ensembles, ensembleTable.id)
	case "token":
		return idsOf(ctx, cl.Tokens, tokenTable.id)
	case "profile":
		return idsOf(ctx, cl.Profiles, profileTable.id)
	case "run":
		return idsOf(ctx, cl.Runs, runTable.id)
	case "htcondor":
		return idsOf(ctx, cl.Packages, func(k corral.Package) string {
			if k.What != poolPackage {
				return ""
			}
			return k.Name
		})
	}
	return nil
}

// idsOf returns the names or ids of objects; an object that has neither is omitted.
func idsOf[T any](
	ctx context.Context, ask func(context.Context, api.Filter) ([]T, error), id func(T) string,
) (found []string) {
	all, _ := ask(ctx, api.Filter{})
	for _, v := range all {
		if name := id(v); name != "" {
			found = append(found, name)
		}
	}
	return found
}
