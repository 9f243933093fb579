package notation

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrSignal is Slurm's error for an invalid signal.
var ErrSignal = errors.New("invalid signal specification")

// signals are the names that Slurm accepts.
var signals = strings.Fields("HUP INT QUIT ABRT KILL USR1 USR2 ALRM TERM CONT STOP TSTP TTIN TTOU URG XCPU")

// ParseSignal parses a signal's name, with or without SIG, or its number.
func ParseSignal(text string) (syscall.Signal, error) {
	if n, ok := number(text); ok && n > 0 && n < 65 {
		return syscall.Signal(n), nil
	}
	if name := strings.TrimPrefix(strings.ToUpper(text), "SIG"); slices.Contains(signals, name) {
		return unix.SignalNum("SIG" + name), nil
	}
	return 0, ErrSignal
}

// ParseWarning parses the argument of --signal: [B:]SIGNAL[@SECONDS]. By default a job receives the signal one minute
// before its end.
func ParseWarning(text string) (*Warning, error) {
	w := Warning{Before: time.Minute}
	rest := text
	if flags, after, ok := strings.Cut(text, ":"); ok {
		for _, flag := range strings.ToUpper(flags) {
			switch flag {
			case 'B':
				w.Batch = true // the steps do not receive it
			case 'R': // for reservations, which do not exist here
			default:
				return nil, ErrSignal
			}
		}
		rest = after
	}
	name, before, timed := strings.Cut(rest, "@")
	if timed {
		n, ok := number(before)
		if !ok || n > 65535 {
			return nil, ErrSignal
		}
		w.Before = time.Duration(n) * time.Second
	}
	var err error
	if w.Signal, err = ParseSignal(name); err != nil {
		return nil, err
	}
	return &w, nil
}
