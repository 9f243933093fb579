package cli

// A profile says what tasks of each kind are like, as they were measured. Profiles are made here, of files of executed
// workflows and of tables; what a plan needs of them goes to corrald with the request, except for those that corrald
// has itself: of its library, of its runs, and those that it keeps.

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow/formats"
	"github.com/corral-pilot/corral/workflow/profile"
	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// estimateFlags say where a plan's estimates of tasks come from.
func estimateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "profile", Usage: "take estimates of tasks from `P`: a file, library:NAME, " +
			"run:ID or the name of a profile that is kept; may be repeated"},
		&cli.BoolFlag{Name: "learn", Usage: "take what earlier runs took before what the workflow says"},
	}
}

// sourcesOfFlag reads the profiles of --profile.
func (v profileVerbs) sourcesOfFlag(c *cli.Context) ([]api.ProfileSource, error) {
	return v.sources(c.Context, c.StringSlice("profile"))
}

// sources makes what corrald is sent of names of profiles. What is a file is read here.
func (v profileVerbs) sources(ctx context.Context, names []string) ([]api.ProfileSource, error) {
	var all []api.ProfileSource
	for _, name := range names {
		source := api.ProfileSource{Name: name}
		if isFile(name) {
			read, err := v.read(ctx, name)
			if err != nil {
				return nil, err
			}
			var document bytes.Buffer
			if err := read.WriteJSON(&document); err != nil {
				return nil, err
			}
			source.Document = document.Bytes()
		}
		all = append(all, source)
	}
	return all, nil
}

// isFile reports whether a name of a profile is that of a file, and not of a profile that corrald has: it is one if it
// looks like one, whether or not it is there, or if there is one.
func isFile(name string) bool {
	switch {
	case strings.HasPrefix(name, api.LibraryProfile), strings.HasPrefix(name, api.RunProfile):
		return false
	case strings.ContainsRune(name, filepath.Separator), strings.EqualFold(filepath.Ext(name), ".csv"):
		return true
	}
	if _, ok := formats.Of(name); ok {
		return true
	}
	found, err := os.Stat(name)
	return err == nil && !found.IsDir()
}

// pathCause is an error of a file whose name stands before it already.
func pathCause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// maxProfile is the most that a file of a profile may have, in bytes: package profile reads no longer ones.
const maxProfile = 256 << 20

// maxTraces is the most that a file of traces may have, in bytes. One trace of a task with few files has some thousand.
const maxTraces = 4 << 30

// read reads a profile from a file: a table if its name ends with .csv, a profile as JSON, traces of tasks, or a
// workflow that was executed.
func (v profileVerbs) read(ctx context.Context, file string) (*profile.Profile, error) {
	f, err := input.Open(file)
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, file, "%w", pathCause(err))
	}
	defer f.Close()
	if strings.EqualFold(filepath.Ext(file), ".csv") {
		return profile.ReadCSV(f, file)
	}
	begin := make([]byte, 512)
	n, _ := f.ReadAt(begin, 0) // what cannot be read, its reader complains of
	if profile.Sniff(begin[:n]) {
		return profile.ReadJSON(input.Limit(ctx, f, maxProfile), file)
	}
	if trace.Sniff(begin[:n]) {
		return v.readTraces(input.Limit(ctx, f, maxTraces), file)
	}
	w, err := v.readWorkflow(ctx, file, false)
	if err != nil {
		return nil, err
	}
	samples := profile.Samples(w, profile.Execution(w, file))
	if len(samples) == 0 {
		return nil, corral.ErrorAt(corral.Invalid, file, "none of its tasks has a measured runtime")
	}
	made, err := profile.Of(samples)
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, file, "%w", err)
	}
	return made, nil
}
