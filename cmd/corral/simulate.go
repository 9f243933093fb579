package main

import "github.com/urfave/cli/v2"

// errorFlag says how runtimes differ from estimates where plans are simulated.
func errorFlag() cli.Flag {
	return &cli.StringFlag{Name: "error", Usage: "simulate runtimes that differ from their estimates by `LAW`: 0, " +
		"uniform:30%, lognormal:0.2, transformation:0.2 or host:0.2 (default: lognormal:0.2)"}
}
