// Package login keeps logins that a person answers over several requests.
//
// For the ssh transport a login is one call, which asks its questions (a passphrase, a one-time code) in the middle.
// For a REST client it is a sequence of requests, each with the answers to one question and each answered with the
// next. A Session stands between the two: it runs the call in a goroutine of its own, which blocks in ask until a
// request brings the answers, while requests block in Next until the call has a question or is over.
//
// The one invariant: an answer answers one question, once. Each question has a number, and an answer names the number
// it is for, so that a request that is repeated because its answer was lost does not answer the question after.
//
// Answers are in no log and no record, and a session lives in memory only: a login that corrald's end interrupts is
// begun again.
package login

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
)

// life is how long a login may take, with all answers that a person gives.
const life = 5 * time.Minute

// Sessions are the logins that were begun. A session that is over stays for a while, for requests that are repeated.
// The zero value has none.
type Sessions struct {
	mu      sync.Mutex // guards begun
	begun   map[string]*Session
	running sync.WaitGroup
}

// A Session is one login. In a request it is named ID.N, where N is the number of the question that the request
// answers.
type Session struct {
	Site corral.Site // where; without an id if there is only a contact

	id      string
	began   time.Time
	cancel  context.CancelFunc
	answers chan []string // to the question that waits; never blocks

	mu       sync.Mutex // guards following
	asked    int
	question *gridsite.Question // that waits for its answers; nil: none
	over     bool
	err      error         // once over
	changed  chan struct{} // closed when asked or over changes next
}

// Begin begins a login at the site by calling dial, whose questions go to the session. The login ends when dial
// returns, and is cancelled when ctx ends, Cancel is called, or a person would have taken too long.
func (ss *Sessions) Begin(ctx context.Context, site corral.Site,
	dial func(ctx context.Context, ask gridsite.Asker) error) *Session {
	ctx, cancel := context.WithTimeout(ctx, life)
	s := &Session{
		Site: site, id: rand.Text(), began: time.Now(), cancel: cancel,
		answers: make(chan []string, 1), changed: make(chan struct{}),
	}
	ss.keep(s)
	ss.running.Go(func() {
		defer cancel()
		err := dial(ctx, s.ask)
		if err != nil && ctx.Err() != nil {
			err = corral.ErrorAt(corral.Forbidden, "login", "%s: the login was given up, or took longer than %s",
				site.Contact, life)
		}
		s.end(err)
	})
	return s
}

// Wait returns when no login is running any more.
func (ss *Sessions) Wait() { ss.running.Wait() }

// keep adds a session and forgets those that are long over.
func (ss *Sessions) keep(s *Session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for id, old := range ss.begun {
		if time.Since(old.began) > 2*life {
			delete(ss.begun, id)
		}
	}
	if ss.begun == nil {
		ss.begun = map[string]*Session{}
	}
	ss.begun[s.id] = s
}

// Find returns the session of an owner that name names, and the number of the question. Those of others are not found.
func (ss *Sessions) Find(owner, name string) (*Session, int, error) {
	id, number, _ := strings.Cut(name, ".")
	n, err := strconv.Atoi(number)
	ss.mu.Lock()
	s := ss.begun[id]
	ss.mu.Unlock()
	if s == nil || err != nil || n < 1 || s.Site.Owner != owner {
		return nil, 0, corral.ErrorAt(corral.NotFound, "session", "there is no such login: it is over")
	}
	return s, n, nil
}

// Cancel ends the login without an answer.
func (s *Session) Cancel() { s.cancel() }

// ask poses a question and waits for its answers.
func (s *Session) ask(ctx context.Context, q gridsite.Question) ([]string, error) {
	s.mu.Lock()
	s.asked++
	s.question = &q
	s.tell()
	s.mu.Unlock()
	select {
	case answers := <-s.answers:
		return answers, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// end notes that the login is over.
func (s *Session) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.question, s.over, s.err = nil, true, err
	s.tell()
}

// tell wakes those that wait for a change; s.mu is held.
func (s *Session) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Answer hands on the answers to question n. If the question has been answered already it does nothing.
func (s *Session) Answer(n int, answers []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case n > s.asked:
		return corral.ErrorAt(corral.NotFound, "session", "there is no such question")
	case n < s.asked || s.question == nil:
		return nil
	case len(answers) != len(s.question.Prompts):
		return corral.ErrorAt(corral.Invalid, "answers", "want %d, got %d", len(s.question.Prompts), len(answers))
	}
	s.question = nil
	s.answers <- answers
	return nil
}

// Next waits for what follows question n: another question, or the end of the login. If ctx ends before, the person has
// gone away, and the login is cancelled.
func (s *Session) Next(ctx context.Context, n int) (api.Login, error) {
	for {
		s.mu.Lock()
		asked, question, over, err, changed := s.asked, s.question, s.over, s.err, s.changed
		s.mu.Unlock()
		switch {
		case over && err != nil:
			return api.Login{}, err
		case over:
			return api.Login{Done: true}, nil
		case asked > n && question != nil:
			return api.Login{Session: s.id + "." + strconv.Itoa(asked), Question: onWire(question)}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			s.cancel()
			return api.Login{}, ctx.Err()
		}
	}
}

// onWire is a question as the API has it.
func onWire(q *gridsite.Question) *api.LoginQuestion {
	wire := &api.LoginQuestion{Name: q.Name, Instruction: q.Instruction, Prompts: []api.LoginPrompt{}}
	for _, p := range q.Prompts {
		wire.Prompts = append(wire.Prompts, api.LoginPrompt(p))
	}
	return wire
}
