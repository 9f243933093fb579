package array

import (
	"path"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/shell"
)

// These are the placeholders for numbers in the names of folders and files.
const (
	taskWord = "%{TASK}"
	runWord  = "%{RUN}"
)

// ofTask reports whether a pattern differs between tasks.
func ofTask(pattern string) bool { return strings.Contains(pattern, taskWord) }

// withTask inserts a task's number into a pattern.
func withTask(pattern string, number int) string {
	return strings.ReplaceAll(pattern, taskWord, strconv.Itoa(number))
}

// checkPattern refuses an unknown placeholder, because it would remain in the file name.
func checkPattern(place, pattern string, mayRun bool) error {
	rest := strings.ReplaceAll(pattern, taskWord, "")
	if mayRun {
		rest = strings.ReplaceAll(rest, runWord, "")
	}
	_, word, ok := strings.Cut(rest, "%{")
	switch word, _, _ = strings.Cut(word, "}"); {
	case !ok:
		return nil
	case word == "RUN":
		return corral.ErrorAt(corral.Invalid, place,
			"%s is for the streams of tasks that run in a given folder: here each run has a folder of its own", runWord)
	}
	return corral.ErrorAt(corral.Invalid, place, "unknown placeholder %%{%s}: there are %s and, for streams, %s", word,
		taskWord, runWord)
}

// script returns the script that the worker's shell runs; the words of the command are the script's arguments. The
// script changes to the folder, creates the folders of the output streams, opens the streams, and then replaces the
// shell by the command. If the folder does not exist, the script reports this and exits with 127, as if the command did
// not exist. $CORRAL_RUN is known only when the task runs.
func (c Command) script(number int) string {
	var s strings.Builder
	s.WriteString("cd -- " + quote(withTask(c.Dir, number)) + " || exit 127\n")
	run := "exec \"$@\""
	for _, stream := range []struct{ operator, pattern string }{
		{"<", c.Stdin}, {">", c.Stdout}, {"2>", c.Stderr},
	} {
		switch {
		case stream.pattern == "":
			continue
		case stream.operator == "2>" && c.Stderr == c.Stdout: // opened twice, each would overwrite the other
			run += " 2>&1"
			continue
		}
		file := withTask(stream.pattern, number)
		if dir := path.Dir(file); stream.operator != "<" && dir != "." && dir != "/" {
			s.WriteString("mkdir -p -- " + quote(dir) + " || exit 127\n")
		}
		run += " " + stream.operator + quote(file)
	}
	s.WriteString(run)
	return s.String()
}

// quote quotes a text as one word of a shell, with the run's number inserted.
func quote(text string) string {
	return strings.ReplaceAll(shell.Quote(text), runWord, `'"$CORRAL_RUN"'`)
}
