package notation

import (
	"errors"
	"strings"
	"time"
)

// ErrSignal is Slurm's error for an invalid signal.
var ErrSignal = errors.New("invalid signal specification")

// signals maps the names that Slurm accepts to Linux's numbers.
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "USR2": 12, "ALRM": 14, "TERM": 15, "CONT": 18,
	"STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22, "URG": 23, "XCPU": 24,
}

// ParseSignal parses a signal's name, with or without SIG, or its number.
func ParseSignal(text string) (int, error) {
	if n, ok := number(text); ok && n > 0 && n < 65 {
		return int(n), nil
	}
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	if s, ok := signals[name]; ok {
		return s, nil
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
