package ssh

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/shell"
)

// maxLine is what Linux admits as one argument, which a remote line is for the login shell.
const maxLine = 128<<10 - 1

// remoteLine makes a line for a login shell that becomes exactly this argument vector without leaving a shell behind.
// The login shell may be csh or fish as well as a POSIX shell; all of them agree on what stands between single quotes,
// if it has no quote, backslash, exclamation mark or control character. So the command, quoted for a POSIX shell,
// travels with these in octal, and printf in /bin/sh turns it back.
//
// Before the command begins the line prints mark on stdout, and mark and its process id on stderr, each on a line of
// its own: what stands before is the login shell's, which may not have ended its last line. exec keeps the process id,
// so the id is the command's.
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

// maxWord is about how many bytes a word of a line may have: csh admits 1024.
const maxWord = 1000

// octal escapes for printf's %b all bytes that mean something between single quotes to some shell, and makes several
// words of a long text. A newline at the very end would be lost, and cannot be there: the last byte of a quoted vector
// is a quote.
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
