package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow/profile"
)

// profileVerbs are the verbs for profiles of tasks.
type profileVerbs struct{ *printer }

func (v profileVerbs) command() *cli.Command {
	return &cli.Command{
		Name: "profile", Category: workflows,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "csv", Usage: "print a table that --profile reads"},
			&cli.BoolFlag{Name: "model", Usage: "print the error of estimates for runs that they have not seen"},
		},
		Action: v.profile,
		Subcommands: append(v.keptCommands(), &cli.Command{
			Name:   "library",
			Action: func(*cli.Context) error { return libraryTable.list(v.printer, profile.Library()) },
		}, v.traceCommand(), v.baselineCommand()),
	}
}

// profile merges the profiles that the arguments name, and prints the result.
func (v profileVerbs) profile(c *cli.Context) error {
	merged := profile.New()
	for _, name := range c.Args().Slice() {
		one, err := v.find(c, name)
		if err == nil {
			err = merged.Merge(one)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case c.Bool("csv"):
		return merged.WriteCSV(v.out)
	case c.Bool("model"):
		return v.showModels(merged)
	case !v.forPeople() && !v.quiet:
		var text bytes.Buffer
		if err := merged.WriteJSON(&text); err != nil {
			return err
		}
		return v.encode(json.RawMessage(text.Bytes()))
	}
	return v.showClasses(merged)
}

// showClasses prints a line for each kind of task, and remarks on unusual kinds.
func (v profileVerbs) showClasses(merged *profile.Profile) error {
	if err := classTable.list(v.printer, merged.Classes()); err != nil || v.quiet {
		return err
	}
	var said []string
	for _, f := range merged.Findings() {
		said = append(said, className(f.Transformation, f.Level)+" "+f.Sentence)
	}
	for i, line := range append(said, speedLines(merged.Speeds())...) {
		if i == 0 {
			fmt.Fprintln(v.out)
		}
		fmt.Fprintln(v.out, "-", line)
	}
	return nil
}

// speedLines compares the types of hosts with the type on which most tasks ran.
func speedLines(speeds profile.Speeds) (said []string) {
	reference := ""
	for host, s := range speeds {
		if s.Factor == 1 && (reference == "" || host < reference) {
			reference = host
		}
	}
	for _, host := range slices.Sorted(maps.Keys(speeds)) {
		if s := speeds[host]; host != reference {
			said = append(said, fmt.Sprintf("tasks take %.2f × as long at %s as at %s, by %d kind(s) that ran at both",
				1/s.Factor, host, reference, s.Shared))
		}
	}
	return said
}

// find returns the named profile: a profile of the library or of a run, a profile that corrald stores, or a file.
func (v profileVerbs) find(c *cli.Context, name string) (*profile.Profile, error) {
	if of, ok := strings.CutPrefix(name, api.LibraryProfile); ok {
		if found, ok := profile.FromLibrary(of); ok {
			return found, nil
		}
		return nil, corral.Errorf(corral.NotFound, "the library has no profile %q: `corral profile library` shows "+
			"those it has", of)
	}
	if of, ok := strings.CutPrefix(name, api.RunProfile); ok {
		id, err := idKey[corral.RunID]("run", of)
		if err != nil {
			return nil, err
		}
		return fetchProfile(c, name, func(cl *api.Client) ([]byte, error) { return cl.RunProfile(c.Context, id) })
	}
	if isFile(name) {
		return v.read(c.Context, name)
	}
	return fetchProfile(c, name, func(cl *api.Client) ([]byte, error) { return profileDocument(c.Context, cl, name) })
}

// fetchProfile requests a profile from corrald and parses the answer.
func fetchProfile(c *cli.Context, name string, ask func(*api.Client) ([]byte, error)) (*profile.Profile, error) {
	cl, err := connect(c)
	if err != nil {
		return nil, err
	}
	text, err := ask(cl)
	if err != nil {
		return nil, err
	}
	return profile.ReadJSON(bytes.NewReader(text), name)
}

// className returns the name of a class as shown in output.
func className(transformation string, level int) string {
	if level == profile.AllLevels {
		return transformation
	}
	return fmt.Sprintf("%s at level %d", transformation, level)
}

// statOf returns a cell with a statistic, which is empty if the statistic was not measured.
func statOf(m profile.Metric, of func(profile.Stat) any) func(*profile.Class) any {
	return func(c *profile.Class) any {
		if s := c.Stat(m); s.Count > 0 {
			return of(s)
		}
		return ""
	}
}

func inSeconds(s float64) string { return span(time.Duration(s * float64(time.Second))) }

var classTable = listing[*profile.Class]{
	id:   func(c *profile.Class) string { return className(c.Transformation, c.Level) },
	none: "nothing was measured",
	columns: []column[*profile.Class]{
		{"tasks", func(c *profile.Class) any { return className(c.Transformation, c.Level) }},
		{"count", func(c *profile.Class) any { return c.Count() }},
		{"runtime", statOf(profile.Runtime, func(s profile.Stat) any { return inSeconds(s.Mean) })},
		{"sd", statOf(profile.Runtime, func(s profile.Stat) any {
			if s.Count < 2 {
				return ""
			}
			return inSeconds(s.SD)
		})},
		{"cpu", statOf(profile.Utilization, func(s profile.Stat) any { return fmt.Sprintf("%.0f %%", 100*s.Mean) })},
		{"memory", statOf(profile.Memory, func(s profile.Stat) any { return plan.Bytes(s.Mean) })},
		{"at most", statOf(profile.Memory, func(s profile.Stat) any {
			if !s.Ranged {
				return ""
			}
			return plan.Bytes(s.Max)
		})},
		{"read", statOf(profile.Read, func(s profile.Stat) any { return plan.Bytes(s.Mean) })},
		{"written", statOf(profile.Written, func(s profile.Stat) any { return plan.Bytes(s.Mean) })},
	},
}

var libraryTable = listing[string]{
	id:      func(name string) string { return api.LibraryProfile + name },
	columns: []column[string]{{"profile", func(name string) any { return api.LibraryProfile + name }}},
}

// showModels prints, for each kind of task that occurs in at least two runs, the error of each model in predicting a
// run from the other runs, and the model that is chosen.
func (v profileVerbs) showModels(merged *profile.Profile) error {
	estimator := profile.NewEstimator(merged, nil)
	share := func(wrong func(profile.Score) float64) func(profile.Score) any {
		return func(s profile.Score) any {
			if s.Actual == 0 {
				return ""
			}
			return fmt.Sprintf("%.1f %%", 100*wrong(s)/s.Actual)
		}
	}
	models := listing[profile.Score]{
		id:   func(s profile.Score) string { return className(s.Transformation, s.Level) },
		none: "comparing models takes two runs with tasks of a kind",
		columns: []column[profile.Score]{
			{"tasks", func(s profile.Score) any { return className(s.Transformation, s.Level) }},
			{"model", func(s profile.Score) any {
				x, _ := estimator.Estimate(profile.Subject{Transformation: s.Transformation, Level: s.Level}, -1)
				return x.Model
			}},
			{"error", share(func(s profile.Score) float64 { return s.Wrong })},
		},
	}
	for k, m := range profile.Models {
		models.columns = append(models.columns, column[profile.Score]{"by " + string(m),
			share(func(s profile.Score) float64 { return s.WrongBy[k] })})
	}
	scores := profile.Validate(merged, nil)
	if err := models.list(v.printer, scores); err != nil || !v.forPeople() || len(scores) == 0 {
		return err
	}
	var all profile.Score
	for _, s := range scores {
		all.Tasks, all.Actual = all.Tasks+s.Tasks, all.Actual+s.Actual
		all.Wrong, all.WrongByMean = all.Wrong+s.Wrong, all.WrongByMean+s.WrongByMean
	}
	missed := share(func(s profile.Score) float64 { return s.Wrong })(all)
	byMean := share(func(s profile.Score) float64 { return s.WrongByMean })(all)
	fmt.Fprintf(v.out, "\n- of %d tasks in %d runs, each estimated from the other runs: %v of their runtime is "+
		"missed, by the mean alone %v\n", all.Tasks, len(merged.Runs()), missed, byMean)
	return nil
}
