// Command corral is the client of corrald. Its commands are in package internal/cli/command.
package main

import (
	"os"

	"github.com/corral-pilot/corral/internal/cli/command"
)

func main() { os.Exit(command.Main()) }
