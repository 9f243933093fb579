package command

// validate checks a plan by itself, here and not in corrald: by the rules of package validator, with what the plan says
// that it assumes.

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/validator"
)

func validateVerb(p *printer) *cli.Command {
	return &cli.Command{Name: "validate", Flags: []cli.Flag{scheduleInFlag()},
		Action: func(c *cli.Context) error { return validate(c, p) }}
}

// A verdict says whether a plan is what it claims to be.
type verdict struct {
	Valid     bool     `json:"valid"`
	Nearest   bool     `json:"nearest"`            // this is of the nearest to a goal out of reach
	Unchecked []string `json:"unchecked"`          // rules that need the workflow
	Breaches  []breach `json:"breaches,omitempty"` // in the order in which they were found
}

// A breach is one rule that a plan breaks.
type breach struct {
	Rule  string `json:"rule"`
	Where string `json:"where"`          // the first place
	More  int    `json:"more,omitempty"` // further places
}

func validate(c *cli.Context, p *printer) error {
	read, err := readPlan(c)
	if err != nil {
		return err
	}
	v := verdict{Nearest: read.nearest, Unchecked: []string{}}
	work := plan.Scheduled(read.document.Workflow, read.document.Schedule)
	if file := c.Args().Get(1); file != "" {
		w, err := readWorkflow(c.Context, p, file, false)
		if err != nil {
			return err
		}
		work = workWith(read.document.Runtimes(), w, read.document.Assumed.Run != 0)
	} else {
		v.Unchecked = []string{"precedence", "memory", "gpus", "disk", "transfer"}
	}
	v.Breaches = slices.DeleteFunc(breachesOf(read, read.document.Assumed.Problem(work)), func(b breach) bool {
		return slices.Contains(v.Unchecked, b.Rule)
	})
	v.Valid = len(v.Breaches) == 0
	return showVerdict(p, v, c.Args().First())
}

// digestRule is the rule that a plan's document is the one that its digest is of.
const digestRule = "digest"

// breachesOf lists the rules that a plan breaks in its problem.
func breachesOf(read planRead, problem plan.Problem) (all []breach) {
	if !sameDigest(read.row) {
		all = append(all, breach{Rule: digestRule, Where: "the plan is not the one that has the digest " +
			read.row.Digest})
	}
	document := *read.document
	document.Number(problem.Work)
	if read.nearest {
		document.Goal = plan.Goal{} // which it misses
	}
	for _, b := range validator.All(problem, &document) {
		all = append(all, breach{b.Rule, b.Where, b.More})
	}
	return all
}

// sameDigest reports whether a plan's document is the one that its row was made with. Of a document alone that is not
// known.
func sameDigest(row corral.Plan) bool {
	var compact bytes.Buffer
	if row.Digest == "" {
		return true
	}
	err := json.Compact(&compact, row.Document)
	return err == nil && fmt.Sprintf("sha256:%x", sha256.Sum256(compact.Bytes())) == row.Digest
}

// showVerdict prints a line for each rule that is broken, or that none is.
func showVerdict(p *printer, v verdict, name string) error {
	var lines []string
	for _, b := range v.Breaches {
		line := b.Rule + ": " + b.Where
		if b.More > 0 {
			line += fmt.Sprintf(" (and %d more)", b.More)
		}
		lines = append(lines, line)
	}
	if v.Valid {
		lines = []string{"valid"}
	}
	if p.format != formTable {
		if err := p.encode(v); err != nil {
			return err
		}
	} else if !p.quiet {
		for _, line := range lines {
			fmt.Fprintln(p.out, line)
		}
	}
	if v.Nearest {
		p.say("the plan's goal is out of reach: this is about the nearest that is possible")
	}
	if len(v.Unchecked) > 0 {
		p.say("without the workflow nothing is said of %s", strings.Join(v.Unchecked, ", "))
	}
	if !v.Valid {
		return shown{corral.ErrorAt(corral.Invalid, name, "rules that the plan breaks: %d", len(lines))}
	}
	return nil
}
