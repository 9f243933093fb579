package ssh

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/shell"
)

// maxLine is Linux's limit for the length of one argument; the login shell receives a remote line as one argument.
const maxLine = 128<<10 - 1

// remoteLine returns a line with which a login shell executes exactly this argument vector, without leaving a shell
// process. The login shell may be csh or fish as well as a POSIX shell; all of them treat text between single quotes in
// the same way if it contains no quotes, backslashes, exclamation marks or control characters. Therefore the command,
// quoted for a POSIX shell, is sent with these characters in octal, and printf in /bin/sh decodes it.
//
// Before the command begins, the line prints mark on stdout, and mark with its process id on stderr, each on a line of
// its own. Earlier output was printed by the login shell, and may lack a final newline. exec keeps the process id, so
// the printed id is also the command's.
func remoteLine(mark string, argv []string) (string, error) {
	if len(argv) == 0 || slices.ContainsFunc(argv, func(arg string) bool { return strings.ContainsRune(arg, 0) }) {
		return "", corral.ErrorAt(corral.Invalid, "argv", "%q: want a command, without a NUL", argv)
	}
	posix := "echo; echo " + mark + "; { echo; echo " + mark + " $$; } >&2; exec " + shell.Line(argv)
	line := `exec /bin/sh -c 'eval "$(printf %b "$@")"' sh '` + octal(posix) + `'`
	if len(line) > maxLine {
		return "", corral.ErrorAt(corral.Invalid, "argv", "%s: %d bytes are too long for a command line", argv[0],
			len(line))
	}
	return line, nil
}

// maxWord is the approximate maximum length of a word in bytes; csh permits 1024.
const maxWord = 1000

// octal escapes, for printf's %b, all bytes that have a meaning between single quotes in some shell, and splits a long
// text into words. A newline at the very end would be lost, but cannot occur: the last byte of a quoted vector is a
// quote.
func octal(text string) string {
	var b strings.Builder
	begin := 0
	for _, c := range []byte(text) {
		if b.Len()-begin >= maxWord {
			b.WriteString("' '")
			begin = b.Len()
		}
		if c < ' ' || c > '~' || strings.IndexByte(`'\!`, c) >= 0 {
			fmt.Fprintf(&b, `\0%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
