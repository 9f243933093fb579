package cli

// doctor prints the findings of package personal about the set-up. It does not need corrald, changes nothing, and fails
// if a finding is bad.

import (
	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/service/personal"
)

func (p *printer) doctorCommand() *cli.Command {
	return &cli.Command{
		Name: "doctor", Category: setUp,
		Action: p.doctor,
	}
}

// doctor prints all findings and then fails with the first bad finding, which the table already shows.
func (p *printer) doctor(c *cli.Context) error {
	layout, err := xdg.Find()
	if err != nil {
		return err
	}
	findings := personal.Examine(c.Context, personal.Corrald{Layout: layout})
	if err := findingTable.list(p, findings); err != nil {
		return err
	}
	for _, f := range findings {
		if !f.OK {
			return printedError{corral.Errorf(corral.Failed, "%s: %s", f.Check, f.Advice)}
		}
	}
	return nil
}

var findingTable = listing[personal.Finding]{
	id: func(f personal.Finding) string { return f.Check },
	columns: []column[personal.Finding]{
		{"check", func(f personal.Finding) any { return f.Check }},
		{"ok", func(f personal.Finding) any { return choose(f.OK, "yes", "NO") }},
		{"found", func(f personal.Finding) any { return f.Found }},
		{"advice", func(f personal.Finding) any { return f.Advice }},
	},
}
