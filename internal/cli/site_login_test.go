package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/api"
)

// terminal returns the two sides of a new terminal: the person's side and the program's side.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// hear reads the program's output until it contains text.
func hear(t *testing.T, person *os.File, text string) string {
	t.Helper()
	var heard strings.Builder
	b := make([]byte, 1)
	for !strings.Contains(heard.String(), text) {
		if _, err := person.Read(b); err != nil {
			t.Fatalf("heard %q, want %q: %v", &heard, text, err)
		}
		heard.Write(b)
	}
	return heard.String()
}

func TestAnswersAreReadFromTheTerminal(t *testing.T) {
	t.Parallel()
	for _, echo := range []bool{false, true} {
		person, program := terminal(t)
		told := make(chan error, 1)
		go func() {
			answer, err := answerTo(t.Context(), program, bufio.NewReader(program), api.LoginPrompt{Text: "Co\x1b[2Jde: ", Echo: echo})
			if err == nil && answer != "s3same" {
				err = fmt.Errorf("read %q", answer)
			}
			fmt.Fprintln(program, "end")
			told <- err
		}()
		hear(t, person, "Co[2Jde: ") // without the sequence that would clear the screen
		until(t, func() bool { return echoes(t, program) == echo })
		if _, err := person.WriteString("s3same\n"); err != nil {
			t.Fatal(err)
		}
		if heard := hear(t, person, "end"); strings.Contains(heard, "s3same") != echo {
			t.Errorf("echo %v: shown is %q", echo, heard)
		}
		if err := <-told; err != nil {
			t.Errorf("echo %v: %v", echo, err)
		}
	}
}

// The end of input ends the question without an answer.
func TestEndOfInputIsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, echo := range []bool{false, true} {
		person, program := terminal(t)
		told := make(chan error, 1)
		go func() {
			_, err := answerTo(t.Context(), program, bufio.NewReader(program), api.LoginPrompt{Text: "Code: ", Echo: echo})
			told <- err
		}()
		hear(t, person, "Code: ")
		until(t, func() bool { return echoes(t, program) == echo })
		if _, err := person.WriteString("\x04"); err != nil {
			t.Fatal(err)
		}
		if err := <-told; !errors.Is(err, io.EOF) {
			t.Errorf("echo %v: %v, want the end", echo, err)
		}
		until(t, func() bool { return echoes(t, program) })
	}
}

// After an interrupt at a secret, the terminal echoes again.
func TestInterruptLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	person, program := terminal(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	told := make(chan error, 1)
	go func() {
		_, err := answerTo(ctx, program, bufio.NewReader(program), api.LoginPrompt{Text: "Passphrase: "})
		told <- err
	}()
	hear(t, person, "Passphrase: ")
	until(t, func() bool { return !echoes(t, program) })
	cancel(interrupted)
	if err := <-told; !errors.Is(err, interrupted) {
		t.Errorf("answerTo = %v, want %v", err, interrupted)
	}
	if !echoes(t, program) {
		t.Error("what is typed stays hidden")
	}
	if _, err := person.WriteString("\n"); err != nil { // ends the waiting read
		t.Fatal(err)
	}
}

func echoes(t *testing.T, tty *os.File) bool {
	t.Helper()
	settings, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return settings.Lflag&unix.ECHO != 0
}

func until(t *testing.T, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(5 * time.Minute)
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it did not come to that within five minutes")
		}
	}
}
