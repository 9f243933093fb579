package cli

// A profile describes the measured behaviour of each kind of task. The client creates profiles from files of executed
// workflows and from tables, and sends a plan's profiles to corrald with the request, except profiles that corrald
// already has: its library, its runs, and stored profiles.

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

// estimateFlags returns the flags for the sources of a plan's estimates.
func estimateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "profile", Usage: "take estimates of tasks from `P`: a file, library:NAME, " +
			"run:ID or the name of a stored profile; may be repeated"},
		&cli.BoolFlag{Name: "no-learn", Usage: "do not use the runtimes and the memory measured in earlier runs"},
	}
}

// sourcesOfFlag returns the sources given by --profile.
func (v profileVerbs) sourcesOfFlag(c *cli.Context) ([]api.ProfileSource, error) {
	return v.sources(c.Context, c.StringSlice("profile"))
}

// sources converts names of profiles to the form used in requests. It reads any files itself.
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

// isFile reports whether a profile's name is the name of a file: the name has the form of a path, whether or not the
// file exists, or a file with that name exists.
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

// pathCause removes the path from an error, for messages that begin with it.
func pathCause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// maxProfile is the maximum length of a profile's file in bytes, which is the maximum that package profile reads.
const maxProfile = 256 << 20

// maxTraces is the maximum length of a file of traces in bytes. A trace of a task with few files has a length of
// several thousand bytes.
const maxTraces = 4 << 30

// read reads a profile from a file, which may contain a table (if its name ends in .csv), a profile as JSON, traces of
// tasks, or an executed workflow.
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
	n, _ := f.ReadAt(begin, 0) // the reader below reports errors
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
