package login

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// code asks for a one-time code.
func code(ctx context.Context, ask gridsite.Asker) error {
	_, err := ask(ctx, gridsite.Question{Name: "ann@hpc", Prompts: []gridsite.Prompt{{Text: "Code: "}}})
	return err
}

// An abandoned login ends by itself, and a request for it reports that.
func TestLoginWithoutAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ss Sessions
		s := ss.Begin(t.Context(), corral.Site{Contact: "ssh://hpc"}, code)
		if step, err := s.Next(t.Context(), 0); err != nil || step.Question == nil {
			t.Fatalf("Next() = %+v, %v, want the question", step, err)
		}
		begun := time.Now()
		_, err := s.Next(t.Context(), 1)
		if took := time.Since(begun); took != life || corral.KindOf(err) != corral.Forbidden ||
			!strings.Contains(err.Error(), "ssh://hpc: the login was cancelled or took longer than 5m0s") {
			t.Errorf("after %s: %v, want it over after %s", took, err, life)
		}
		ss.Wait()
	})
}

// A finished session can be found for a while; it is dropped when others begin.
func TestOldSessionsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ss Sessions
		done := func(context.Context, gridsite.Asker) error { return nil }
		old := ss.Begin(t.Context(), corral.Site{}, done)
		for _, tt := range []struct {
			after time.Duration
			found bool
		}{{life, true}, {2 * life, false}} {
			<-time.After(tt.after)
			ss.Begin(t.Context(), corral.Site{}, done)
			if _, _, err := ss.Find("", old.id+".1"); (err == nil) != tt.found {
				t.Errorf("%s later: %v", tt.after, err)
			}
		}
		ss.Wait()
	})
}
