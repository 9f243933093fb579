package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// completeWord is the first argument by which a shell's completion calls this program; the words of
// the command line follow, up to the one that is to be completed.
const completeWord = "__complete"

// completions are the scripts that hook a shell's completion to this program. Where it has nothing to
// say, the shell completes files.
var completions = map[string]string{
	"bash": `_corral() {
	local IFS=$'\n'
	COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" ` + completeWord + ` "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
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
}

func completionCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "completion", Category: setUp, Usage: "print the completion script of a shell", ArgsUsage: "bash|zsh",
		Description: explained("It completes commands, flags, and the names and ids of what corrald has.", `eval "$(corral completion bash)"`),
		Action: func(c *cli.Context) error {
			shell, err := argument(c, "shell")
			if err != nil {
				return err
			}
			script, ok := completions[shell]
			if !ok {
				return corral.ErrorAt(corral.Invalid, "shell", "%q is none of bash, zsh", shell)
			}
			_, err = fmt.Fprint(p.out, script)
			return err
		},
	}
}

// choices are the values of flags that have few.
var choices = map[string][]string{
	"output": forms, "contact": {"local:", "ssh://"},
	"batch": corral.BatchSystemNames(), "head-batch": corral.BatchSystemNames(), "kind": {string(corral.Embedded), string(corral.Condor)},
	"resubmit": {"never", "forever", "until="}, "broker": {"auto", "none", "ccb", "relay"}, "slots": {"partitionable", "static"}, "clustering": {"none", "horizontal="},
}

// complete prints what the last of words may become, one a line.
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

func candidates(ctx context.Context, l *line, last string) (found []string) {
	switch {
	case l.wanting != nil:
		name := l.wanting.Names()[0]
		if known := choices[name]; known != nil {
			return known
		}
		return existing(ctx, l, strings.ToUpper(name))
	case strings.HasPrefix(last, "-"):
		for _, f := range append(l.ownFlag, l.globalSet...) {
			for _, name := range f.Names() {
				found = append(found, strings.Repeat("-", min(2, len(name)))+name)
			}
		}
		return append(found, "--help", "-h")
	case len(l.commands) > 0 && len(l.positional) > 0:
		return nil // there is no such command
	case len(l.commands) > 0:
		for _, c := range l.commands {
			found = append(found, c.Name)
		}
		return found
	}
	return argumentsOf(ctx, l)
}

// argumentsOf returns what the command at the end of the line may take as an argument.
func argumentsOf(ctx context.Context, l *line) []string {
	c := l.path[len(l.path)-1]
	kind, _, _ := strings.Cut(strings.TrimSuffix(c.ArgsUsage, "…"), " [")
	switch {
	case strings.Contains(kind, "|"):
		return strings.Split(kind, "|")
	case kind == "ID":
		kind = "GLIDEIN"
	}
	return existing(ctx, l, kind)
}

// existing returns the names or ids that corrald has of a kind of object, as help calls it. Nothing is
// better than a wait here.
func existing(ctx context.Context, l *line, kind string) (found []string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	cl, err := connectTo(serverOf(l))
	if err != nil {
		return nil // no corrald: nothing to complete
	}
	defer cl.Close()
	return namesOf(ctx, cl, kind)
}

// serverOf returns the --server of a command line, else the variable's.
func serverOf(l *line) string {
	for i, word := range l.global {
		switch server, ok := strings.CutPrefix(word, "--server="); {
		case ok:
			return server
		case word == "--server" && i+1 < len(l.global):
			return l.global[i+1]
		}
	}
	return os.Getenv("CORRAL_SERVER")
}

func namesOf(ctx context.Context, cl *api.Client, kind string) (found []string) {
	switch kind {
	case "SITE":
		sites, _ := cl.Sites(ctx, api.Filter{})
		for _, s := range sites {
			found = append(found, s.Name)
		}
	case "CLUSTER":
		clusters, _ := cl.Clusters(ctx, api.Filter{})
		for _, k := range clusters {
			found = append(found, k.Name)
		}
	case "HTCONDOR":
		packages, _ := cl.Packages(ctx, api.Filter{})
		for _, p := range packages {
			if p.What == poolPackage {
				found = append(found, p.Name)
			}
		}
	case "GLIDEIN":
		glideins, _ := cl.Glideins(ctx, api.Filter{})
		for _, g := range glideins {
			found = append(found, strconv.FormatInt(int64(g.ID), 10))
		}
	case "RUN":
		runs, _ := cl.Runs(ctx, api.Filter{})
		for _, r := range runs {
			found = append(found, strconv.FormatInt(int64(r.ID), 10))
		}
	}
	return found
}
