package server_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
)

// asks simulates a site that asks for a passphrase and then a one-time code; a real one, with an sshd, is in
// internal/e2e.
func asks(_ context.Context, ask gridsite.Asker) error {
	ctx := context.Background()
	for _, q := range []struct {
		question gridsite.Question
		want     string
	}{
		{gridsite.Question{Name: "/home/ann/.ssh/id_ed25519", Prompts: []gridsite.Prompt{{Text: "Passphrase: "}}}, "open"},
		{gridsite.Question{Name: "ann@hpc", Instruction: "Second factor", Prompts: []gridsite.Prompt{{Text: "Code: ", Echo: true}}}, "123456"},
	} {
		answers, err := ask(ctx, q.question)
		if err != nil {
			return err
		}
		if answers[0] != q.want {
			return &gridsite.LoginError{User: "ann", Address: "hpc:22", Err: errors.New("wrong answer to " + q.question.Prompts[0].Text), Answerable: true}
		}
	}
	return nil
}

// hpc is a site behind ssh.
func (f *fixture) hpc(t *testing.T) corral.Site {
	t.Helper()
	return must(f.CreateSite(t.Context(), api.NewSite{Name: "hpc", Contact: "ssh://hpc", Batch: "fork"}, ""))(t)
}

func TestLoginRelaysQuestions(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.login = asks
	site := f.hpc(t)
	var asked []api.LoginQuestion
	answers := [][]string{{"open"}, {"123456"}}
	err := f.Login(t.Context(), api.NewLogin{Site: "hpc"}, func(_ context.Context, q api.LoginQuestion) ([]string, error) {
		asked = append(asked, q)
		return answers[len(asked)-1], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []api.LoginQuestion{
		{Name: "/home/ann/.ssh/id_ed25519", Prompts: []api.LoginPrompt{{Text: "Passphrase: "}}},
		{Name: "ann@hpc", Instruction: "Second factor", Prompts: []api.LoginPrompt{{Text: "Code: ", Echo: true}}},
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	entries := must(f.SiteHistory(t.Context(), site.Name))(t)
	if last := entries[len(entries)-1]; last.Event != "login" || last.Actor != "local" {
		t.Errorf("history ends with %+v, want the login", last)
	}
	if bytes.Contains(f.log.Bytes(), []byte("123456")) {
		t.Error("an answer is in the log")
	}
}

// If an answer arrives twice, because the response was lost, it answers one question.
func TestRepeatedAnswerAnswersOnce(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.login = asks
	f.hpc(t)
	first := must(f.LoginStep(t.Context(), api.NewLogin{Site: "hpc"}))(t)
	for range 2 {
		second := must(f.LoginStep(t.Context(), api.NewLogin{Session: first.Session, Answers: []string{"open"}}))(t)
		if second.Question == nil || second.Question.Name != "ann@hpc" || second.Session == first.Session {
			t.Fatalf("after the first answer: %+v, want the second question", second)
		}
	}
	last := strings.TrimSuffix(first.Session, "1") + "2"
	for range 2 {
		if got := must(f.LoginStep(t.Context(), api.NewLogin{Session: last, Answers: []string{"123456"}}))(t); !got.Done {
			t.Errorf("after the last answer: %+v, want it done", got)
		}
	}
}

func TestLoginThatFails(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.login = asks
	f.hpc(t)
	err := f.Login(t.Context(), api.NewLogin{Site: "hpc"}, func(context.Context, api.LoginQuestion) ([]string, error) { return []string{"wrong"}, nil })
	wantKind(t, "wrong passphrase", err, corral.Forbidden, "login")

	// A client that stops answering ends the login.
	gone := errors.New("interrupted")
	if err := f.Login(t.Context(), api.NewLogin{Contact: "ssh://hpc"}, func(context.Context, api.LoginQuestion) ([]string, error) { return nil, gone }); !errors.Is(err, gone) {
		t.Errorf("Login() = %v, want %v", err, gone)
	}
	step := must(f.LoginStep(t.Context(), api.NewLogin{Contact: "ssh://ann@elsewhere"}))(t)
	for _, tt := range []struct {
		name  string
		in    api.NewLogin
		kind  corral.Kind
		place string
	}{
		{"nowhere", api.NewLogin{}, corral.Invalid, "site"},
		{"two places", api.NewLogin{Site: "hpc", Contact: "ssh://hpc"}, corral.Invalid, "site"},
		{"unknown site", api.NewLogin{Site: "nowhere"}, corral.NotFound, "site"},
		{"here", api.NewLogin{Contact: "local:"}, corral.Unsatisfiable, "site"},
		{"no contact", api.NewLogin{Contact: "hpc"}, corral.Invalid, "contact"},
		{"answers to nothing", api.NewLogin{Site: "hpc", Answers: []string{"x"}}, corral.Invalid, "session"},
		{"no such session", api.NewLogin{Session: "x.1", Answers: []string{"x"}}, corral.NotFound, "session"},
		{"no such question", api.NewLogin{Session: step.Session + "0", Answers: []string{"x"}}, corral.NotFound, "session"},
		{"an answer too many", api.NewLogin{Session: step.Session, Answers: []string{"x", "y"}}, corral.Invalid, "answers"},
		{"session of a site", api.NewLogin{Session: step.Session, Site: "hpc"}, corral.Invalid, "session"},
	} {
		_, err := f.LoginStep(t.Context(), tt.in)
		wantKind(t, tt.name, err, tt.kind, tt.place)
	}
	if got := must(f.LoginStep(t.Context(), api.NewLogin{Session: step.Session, Cancel: true}))(t); got.Done {
		t.Errorf("a cancelled login: %+v", got)
	}
}

// A stopping server does not wait for a person.
func TestLoginEndsWithTheServer(t *testing.T) {
	t.Parallel()
	f := start(t)
	ended := make(chan error, 1)
	f.login = func(ctx context.Context, ask gridsite.Asker) error {
		_, err := ask(ctx, gridsite.Question{Prompts: []gridsite.Prompt{{Text: "Code: "}}})
		ended <- err
		return err
	}
	f.hpc(t)
	must(f.LoginStep(t.Context(), api.NewLogin{Site: "hpc"}))(t)
	f.server.Stop()
	if err := <-ended; err == nil {
		t.Error("the question was answered")
	}
}

// A server that ends for any reason ends the pending logins and does not wait for their time limit.
func TestLoginsEndWithTheServer(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.login = func(ctx context.Context, ask gridsite.Asker) error {
		_, err := ask(ctx, gridsite.Question{Prompts: []gridsite.Prompt{{Text: "Code: "}}})
		return err
	}
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- f.server.Serve(context.WithoutCancel(t.Context()), l) }()
	f.hpc(t)
	if step := must(f.LoginStep(t.Context(), api.NewLogin{Site: "hpc"}))(t); step.Question == nil {
		t.Fatalf("%+v, want a question", step)
	}
	l.Close()
	select {
	case err := <-served:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve() = %v, want that its listener was closed", err)
		}
	case <-time.After(3 * time.Minute):
		t.Fatal("it waits for a login")
	}
}
