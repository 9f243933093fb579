package clustering

import (
	_ "embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/internal/kit/shell"
	"github.com/corral-pilot/corral/workflow"
)

// scriptHead is the beginning of every script: it defines the functions that the rest of the script uses.
//
//go:embed script.sh
var scriptHead string

// scriptOf returns a script for sh that runs tasks in order. outputs lists all the files that the tasks write.
func scriptOf(tasks []*workflow.Task, outputs []string) string {
	var s strings.Builder
	s.WriteString(scriptHead)
	s.WriteString("\nplaceholders() {\n\t:\n")
	for _, file := range outputs {
		fmt.Fprintf(&s, "\tplaceholder %s\n", shell.Quote(file))
	}
	s.WriteString("}\n")
	for _, t := range tasks {
		writeTask(&s, t)
	}
	return s.String()
}

// writeTask writes the part of a script that runs one task: it prepares the task's folder, starts the process with its
// streams, and moves the task's declared outputs out of the folder.
func writeTask(s *strings.Builder, t *workflow.Task) {
	name := func(file string) string { // in the task's folder
		if name := t.Names[file]; name != "" {
			return name
		}
		return file
	}
	fmt.Fprintf(s, "\nbegin %s\n", shell.Quote(t.ID))
	for _, file := range t.Inputs {
		word := "give"
		if slices.Contains(t.Outputs, file) { // the task writes a new version
			word = "copy"
		}
		fmt.Fprintf(s, "%s %s %s\n", word, shell.Quote(file), shell.Quote(name(file)))
	}
	for _, file := range append([]string{t.Stdout, t.Stderr}, t.Outputs...) {
		if dir := path.Dir(name(file)); file != "" && dir != "." {
			fmt.Fprintf(s, "mkdir -p -- %s || fail $?\n", shell.Quote(dir))
		}
	}
	s.WriteString(commandOf(t))
	for _, redirect := range [][2]string{{"<", t.Stdin}, {">", t.Stdout}, {"2>", t.Stderr}} {
		if redirect[1] != "" {
			s.WriteString(" " + redirect[0] + shell.Quote(name(redirect[1])))
		}
	}
	s.WriteString(" || fail $?\n")
	for _, file := range t.Outputs {
		fmt.Fprintf(s, "keep %s %s\n", shell.Quote(name(file)), shell.Quote(file))
	}
	s.WriteString("end\n")
}

// commandOf returns the command line of a task. It always uses env, even without environment variables: a command that
// is started by its name alone could be interpreted as a shell keyword.
func commandOf(t *workflow.Task) string {
	words := []string{"env", "--"}
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		words = append(words, shell.Quote(name+"="+t.Env[name]))
	}
	if strings.Contains(t.Argv[0], "=") { // env would treat it as a variable
		words = append(words, "sh", "-c", shell.Quote(`exec "$0" "$@"`))
	}
	words = append(words, shell.Line(t.Argv))
	if t.Timeout > 0 {
		seconds := strconv.FormatFloat(t.Timeout.Seconds(), 'f', -1, 64)
		words = append([]string{"timeout", "-k", "10", seconds}, words...)
	}
	return strings.Join(words, " ")
}
