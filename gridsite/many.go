package gridsite

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/input"
)

// Many is what a Batch may offer besides: to do for many jobs, in one round trip, what Batch does for one. Who has a
// thousand jobs at a site asks it a few things at a time all the same.
type Many interface {
	// ReadMany returns files of jobs' directories, by tag and name. One that is not there is absent; of one longer than
	// MaxReadMany it is the end.
	ReadMany(ctx context.Context, tags, names []string) (map[string]map[string][]byte, error)

	// CancelMany does what Cancel does for each, and returns when that is done for all. The error says which were not
	// ended, and why; the others were.
	CancelMany(ctx context.Context, tags []string, grace time.Duration) error

	// ForgetMany does what Forget does for each. The error says what stays, and why.
	ForgetMany(ctx context.Context, tags []string) error
}

// A Pruner is a Batch in which a tag may have more than one job: see JobStatus.Extra.
type Pruner interface {
	// CancelJobs ends jobs by the site's own ids, and leaves other jobs under their tags alone.
	CancelJobs(ctx context.Context, ids []string) error
}

// MaxReadMany is how much of one file ReadMany returns, in bytes.
const MaxReadMany = readManyBlocks * 512

const readManyBlocks = 128

// eachWidth is how many jobs of one machine are ended at a time: to look through all of its processes costs something.
const eachWidth = 8

var (
	eachScript     = script("each")
	readManyScript = script("readmany")
)

// manyName admits names of files that a shell takes as plain words.
var manyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ReadMany asks for all files with one command.
func (f *Fork) ReadMany(ctx context.Context, tags, names []string) (map[string]map[string][]byte, error) {
	if err := f.checkAll(tags); err != nil {
		return nil, err
	}
	return readMany(ctx, f.run, tags, names)
}

// CancelMany ends eachWidth jobs at a time.
func (f *Fork) CancelMany(ctx context.Context, tags []string, grace time.Duration) error {
	return f.each(ctx, "cancelling", cancelScript, tags, seconds(grace))
}

// ForgetMany forgets eachWidth jobs at a time.
func (f *Fork) ForgetMany(ctx context.Context, tags []string) error {
	return f.each(ctx, "forgetting", forgetScript, tags, rand.Text())
}

func (f *Fork) checkAll(tags []string) error {
	for _, tag := range tags {
		if err := f.check(tag); err != nil {
			return err
		}
	}
	return nil
}

// each runs a script that has nothing to say for each tag, with one command.
func (f *Fork) each(ctx context.Context, what, script string, tags []string, arg string) error {
	if err := f.checkAll(tags); err != nil {
		return err
	}
	out, err := f.run(ctx, eachScript, lines(tags), strconv.Itoa(eachWidth), script, arg)
	return failures(what, tags, out, err)
}

// failures reads what a script says that does something for each tag: TAG WHY for each for which it did not, then "end".
func failures(what string, tags []string, out []byte, err error) error {
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
			errs = append(errs, fmt.Errorf("%s %s: %w", what, tag, &Refused{Text: why, Transient: true}))
		} else {
			errs = append(errs, corral.Errorf(corral.Unknown, "%s %s: %s", what, tag, why))
		}
	}
	return errors.Join(errs...)
}

// lines is each word on a line of its own.
func lines(words []string) io.Reader {
	return strings.NewReader(strings.Join(words, "\n") + "\n")
}

// A runner runs a script at a site, with the site's root as its first argument, and returns what it printed.
type runner func(ctx context.Context, script string, stdin io.Reader, args ...string) ([]byte, error)

// readMany is ReadMany for every dialect whose jobs have their directories where JobDir says.
func readMany(ctx context.Context, run runner, tags, names []string) (map[string]map[string][]byte, error) {
	for _, name := range names {
		if !manyName.MatchString(name) {
			return nil, corral.ErrorAt(corral.Invalid, "file", "%q is not a plain name", name)
		}
	}
	out, err := run(ctx, readManyScript, lines(tags), append([]string{strconv.Itoa(readManyBlocks)}, names...)...)
	if err != nil {
		return nil, fmt.Errorf("reading files of %d jobs: %w", len(tags), err)
	}
	files, err := parseMany(out)
	if err != nil {
		return nil, corral.Errorf(corral.Unknown, "reading files of %d jobs: %w", len(tags), err)
	}
	return files, nil
}

// parseMany reads what readmany.sh prints, and takes nothing that is not whole.
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
		case !ok || len(rest) < MaxReadMany || !bytes.ContainsRune(line, '/'):
			return nil, errors.New("the answer was cut short")
		}
		add(string(line), rest[:MaxReadMany])
		out = rest[MaxReadMany:]
	}
}

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
		content, err := input.ReadAll(r, MaxReadMany) // of a file with holes an archive has less than the file
		if err != nil {
			return err
		}
		add(h.Name, content)
	}
}
