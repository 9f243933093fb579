package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral/internal/kit/input"
)

// nearest returns the one among names that was probably meant by name, or "".
func nearest(among []string, name string) string { return input.Nearest(among, name) }

// namesIn are the names of commands.
func namesIn(commands []*cli.Command) (names []string) {
	for _, c := range commands {
		names = append(names, c.Name)
	}
	return names
}
