package cli

// validate checks a plan in this program, not in corrald, with the rules of package validator and the plan's own
// assumptions.

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

func (v planVerbs) validateCommand() *cli.Command {
	return &cli.Command{Name: "validate", Flags: []cli.Flag{scheduleInFlag()},
		Action: v.validate}
}

// A verdict is the result of a validation.
type verdict struct {
	Valid     bool     `json:"valid"`
	Nearest   bool     `json:"nearest"`            // the goal is out of reach; the nearest plan was checked
	Unchecked []string `json:"unchecked"`          // rules whose check needs the workflow
	Breaches  []breach `json:"breaches,omitempty"` // rules that the plan breaks, in the order in which they were found
}

// A breach is one rule that a plan breaks.
type breach struct {
	Rule  string `json:"rule"`
	Where string `json:"where"`          // the first place where the plan breaks the rule
	More  int    `json:"more,omitempty"` // number of further places
}

func (v planVerbs) validate(c *cli.Context) error {
	read, err := readPlan(c)
	if err != nil {
		return err
	}
	found := verdict{Nearest: read.nearest, Unchecked: []string{}}
	work := plan.Scheduled(read.document.Workflow, read.document.Schedule)
	if file := c.Args().Get(1); file != "" {
		w, err := v.readWorkflow(c.Context, file, false)
		if err != nil {
			return err
		}
		work = workWith(read.document.Runtimes(), w, read.document.Assumed.Run != 0)
	} else {
		found.Unchecked = []string{"precedence", "memory", "gpus", "disk", "transfer"}
	}
	found.Breaches = slices.DeleteFunc(breachesOf(read, read.document.Assumed.Problem(work)), func(b breach) bool {
		return slices.Contains(found.Unchecked, b.Rule)
	})
	found.Valid = len(found.Breaches) == 0
	return v.showVerdict(found, c.Args().First())
}

// digestRule is the name of the rule that a plan's document must match its digest.
const digestRule = "digest"

// breachesOf lists the rules that a plan breaks with respect to its problem.
func breachesOf(read planInput, problem plan.Problem) (all []breach) {
	if !sameDigest(read.row) {
		all = append(all, breach{Rule: digestRule, Where: "the plan is not the one that has the digest " +
			read.row.Digest})
	}
	document := *read.document
	document.Number(problem.Work)
	if read.nearest {
		document.Goal = plan.Goal{} // the nearest plan misses the goal
	}
	for _, b := range validator.All(problem, &document) {
		all = append(all, breach{b.Rule, b.Where, b.More})
	}
	return all
}

// sameDigest reports whether a plan's document matches the digest of its row. A document without a row has no digest,
// and passes the check.
func sameDigest(row corral.Plan) bool {
	var compact bytes.Buffer
	if row.Digest == "" {
		return true
	}
	err := json.Compact(&compact, row.Document)
	return err == nil && fmt.Sprintf("sha256:%x", sha256.Sum256(compact.Bytes())) == row.Digest
}

// showVerdict prints a line for each broken rule, or "valid".
func (v planVerbs) showVerdict(found verdict, name string) error {
	var lines []string
	for _, b := range found.Breaches {
		line := b.Rule + ": " + b.Where
		if b.More > 0 {
			line += fmt.Sprintf(" (and %d more)", b.More)
		}
		lines = append(lines, line)
	}
	if found.Valid {
		lines = []string{"valid"}
	}
	if v.format != formTable {
		if err := v.encode(found); err != nil {
			return err
		}
	} else if !v.quiet {
		for _, line := range lines {
			fmt.Fprintln(v.out, line)
		}
	}
	if found.Nearest {
		v.say("the plan's goal is out of reach: the nearest feasible plan was checked")
	}
	if len(found.Unchecked) > 0 {
		v.say("not checked without the workflow: %s", strings.Join(found.Unchecked, ", "))
	}
	if !found.Valid {
		return printedError{corral.ErrorAt(corral.Invalid, name, "broken rules: %d", len(lines))}
	}
	return nil
}
