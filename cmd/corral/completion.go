package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
)

// completions are the scripts that hook the shell's completion to --generate-bash-completion.
var completions = map[string]string{
	"bash": `_corral() {
	local words=("${COMP_WORDS[@]:0:COMP_CWORD}")
	COMPREPLY=($(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o bashdefault -o default -F _corral corral
`,
	"zsh": `#compdef corral
_corral() {
	local -a found
	found=("${(@f)$("${words[@]:0:$((CURRENT-1))}" --generate-bash-completion 2>/dev/null)}")
	_describe 'corral' found || _files
}
compdef _corral corral
`,
}

func completionCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print the completion script of a shell", ArgsUsage: "bash|zsh",
		Description: "Example: eval \"$(corral completion bash)\"",
		Action: func(c *cli.Context) error {
			shell, err := argument(c, "shell")
			if err != nil {
				return err
			}
			script, ok := completions[shell]
			if !ok {
				return corral.Errorf(corral.Invalid, "%q is none of bash, zsh", shell)
			}
			_, err = fmt.Fprint(p.out, script)
			return err
		},
	}
}
