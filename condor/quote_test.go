package condor_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/condor"
)

// Any value without newlines survives formatting and parsing in the new syntax.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ \ta-z'"\\=;é,#()]{0,8}`)
		args := rapid.SliceOfN(text, 0, 5).Draw(t, "args")
		env := rapid.MapOfN(rapid.StringMatching(`[A-Z_]{1,3}`), text, 0, 3).Draw(t, "env")
		var words, pairs []string
		for _, a := range args {
			words = append(words, condor.Word(a))
		}
		for name, value := range env {
			pairs = append(pairs, name+"="+condor.Word(value))
		}
		got, err := condor.Arguments(condor.Words(strings.Join(words, " ")))
		if diff := cmp.Diff(args, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("arguments: %v (-want +got):\n%s", err, diff)
		}
		gotEnv, err := condor.Environment(condor.Words(strings.Join(pairs, " ")))
		if diff := cmp.Diff(env, gotEnv, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("environment: %v (-want +got):\n%s", err, diff)
		}
	})
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`a "b`:   "arguments: a double quote in the middle has no backslash",
		`"a`:     "arguments: the double quote that ends it is missing, or something follows it",
		`"`:      "arguments: the double quote that ends it is missing, or something follows it",
		`"a" b`:  "arguments: the double quote that ends it is missing, or something follows it",
		`"a "b"`: "arguments: a double quote in the middle is not doubled",
		`"'a"`:   "arguments: a single quote has no end",
	} {
		if args, err := condor.Arguments(value); err == nil || err.Error() != want {
			t.Errorf("Arguments(%s) = %q, %v, want %s", value, args, err, want)
		}
	}
	for value, want := range map[string]string{
		`A`:       `environment: "A" is not NAME=VALUE`,
		`A=1;=2`:  `environment: "=2" is not NAME=VALUE`,
		`"A=1 B"`: `environment: "B" is not NAME=VALUE`,
		`"A='1"`:  "environment: a single quote has no end",
	} {
		if env, err := condor.Environment(value); err == nil || err.Error() != want {
			t.Errorf("Environment(%s) = %q, %v, want %s", value, env, err, want)
		}
	}
}
