// Command corral is the client of corrald. Its commands are in package internal/cli.
package main

import (
	"os"

	"github.com/corral-pilot/corral/internal/cli"
)

func main() { os.Exit(cli.Main()) }
