package jobdir

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/fault"
	"github.com/corral-pilot/corral/internal/kit/input"
)

var (
	readManyScript = Script([]string{"readmany"}, scripts)
	listScript     = Script([]string{"list"}, scripts)
)

// Tags lists the directories of jobs. Each dialect keeps a job's directory from submission until the job is forgotten,
// so that every job is listed unless someone else removed its directory.
func (d Dirs) Tags(ctx context.Context) ([]string, error) {
	if err := d.Admits(); err != nil {
		return nil, err
	}
	out, err := d.Run(ctx, fault.SiteList, listScript, nil)
	if err != nil {
		return nil, fmt.Errorf("listing jobs: %w", err)
	}
	body, ok := bytes.CutSuffix(out, []byte("end\n"))
	if !ok {
		return nil, corral.Errorf(corral.Unknown, "listing jobs: the answer was cut short")
	}
	var tags []string
	for line := range strings.Lines(string(body)) {
		if tag := strings.TrimSuffix(line, "\n"); IsTag(tag) {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags, nil
}

// plainName matches names of files that a shell accepts as plain words.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Lines returns the words one per line, the format in which scripts read tags.
func Lines(words []string) io.Reader {
	return strings.NewReader(strings.Join(words, "\n") + "\n")
}

// doing contains the words for the action of a script in errors.
var doing = map[fault.Point]string{fault.SiteCancel: "cancelling", fault.SiteForget: "forgetting"}

// Each runs a script that acts on every tag; its point names the action. The script prints TAG WHY for each failure,
// and finally "end".
func (d Dirs) Each(ctx context.Context, at fault.Point, script string, tags []string, args ...string) error {
	what := doing[at]
	if err := d.Admits(tags...); err != nil {
		return err
	}
	out, err := d.Run(ctx, at, script, Lines(tags), args...)
	if err != nil {
		return fmt.Errorf("%s %d jobs: %w", what, len(tags), err)
	}
	body, ok := bytes.CutSuffix(out, []byte("end\n"))
	if !ok {
		return corral.Errorf(corral.Unknown, "%s %d jobs: the answer was cut short", what, len(tags))
	}
	var errs []error
	for line := range strings.Lines(string(body)) {
		tag, why, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasSuffix(why, "has not ended") {
			errs = append(errs, fmt.Errorf("%s %s: %w", what, tag, &gridsite.Refused{Text: why, Transient: true}))
		} else {
			errs = append(errs, corral.Errorf(corral.Unknown, "%s %s: %s", what, tag, why))
		}
	}
	return errors.Join(errs...)
}

// ReadMany reads all files with one command. The output begins with the ends of longer files, each of exactly
// MaxReadMany bytes after its name; then the other files follow as one tar archive.
func (d Dirs) ReadMany(ctx context.Context, tags, names []string) (map[string]map[string][]byte, error) {
	if err := d.Admits(tags...); err != nil {
		return nil, err
	}
	for _, name := range names {
		if !plainName.MatchString(name) {
			return nil, corral.ErrorAt(corral.Invalid, "file", "%q is not a plain name", name)
		}
	}
	args := append([]string{strconv.Itoa(gridsite.MaxReadMany / 512)}, names...)
	out, err := d.Run(ctx, fault.SiteRead, readManyScript, Lines(tags), args...)
	if err != nil {
		return nil, fmt.Errorf("reading files of %d jobs: %w", len(tags), err)
	}
	files, err := parseMany(out)
	if err != nil {
		return nil, corral.Errorf(corral.Unknown, "reading files of %d jobs: %w", len(tags), err)
	}
	return files, nil
}

// parseMany parses the output of readmany.sh and rejects incomplete output.
func parseMany(out []byte) (map[string]map[string][]byte, error) {
	files := map[string]map[string][]byte{}
	add := func(place string, content []byte) {
		tag, name, _ := strings.Cut(place, "/")
		if files[tag] == nil {
			files[tag] = map[string][]byte{}
		}
		files[tag][name] = content
	}
	for {
		line, rest, ok := bytes.Cut(out, []byte("\n"))
		switch {
		case string(line) == "end" && ok && len(rest) == 0:
			return files, nil
		case string(line) == "tar" && bytes.HasSuffix(rest, []byte("end\n")):
			return files, untar(rest, add)
		case !ok || len(rest) < gridsite.MaxReadMany || !bytes.ContainsRune(line, '/'):
			return nil, errors.New("the answer was cut short")
		}
		add(string(line), rest[:gridsite.MaxReadMany])
		out = rest[gridsite.MaxReadMany:]
	}
}

// untar reads the archive. It ignores data after the archive's end.
func untar(archive []byte, add func(place string, content []byte)) error {
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := input.ReadAll(r, gridsite.MaxReadMany) // a sparse file may be larger than the archive
		if err != nil {
			return err
		}
		add(h.Name, content)
	}
}
