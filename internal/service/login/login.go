// Package login manages logins whose questions a person answers over several requests.
//
// For the ssh transport a login is one call, which asks its questions (a passphrase, a one-time code) while it runs.
// For a REST client it is a sequence of requests: each contains the answers to one question and is answered with the
// next one. A Session connects the two: it runs the call in its own goroutine, which blocks in ask until a request
// brings the answers, while requests block in Next until the call has a question or has ended.
//
// The one invariant: an answer is used for one question, once. Each question has a number, and an answer contains the
// number of its question, so that a request that is repeated because its response was lost does not answer the next
// question.
//
// Answers are never logged or recorded, and a session exists only in memory: a login that is interrupted by the end
// of corrald must be started again.
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

// life is the maximum duration of a login, including all of a person's answers.
const life = 5 * time.Minute

// Sessions holds the logins that were started. A finished session is kept for a while for repeated requests. The zero
// value is empty.
type Sessions struct {
	mu      sync.Mutex // guards begun
	begun   map[string]*Session
	running sync.WaitGroup
}

// A Session is one login. Requests refer to it as ID.N, where N is the number of the question that the request
// answers.
type Session struct {
	Site corral.Site // the site; without an id if only a contact is given

	id      string
	began   time.Time
	cancel  context.CancelFunc
	answers chan []string // to the pending question; never blocks

	mu       sync.Mutex // guards the fields below
	asked    int
	question *gridsite.Question // the pending question; nil: none
	over     bool
	err      error         // valid once over
	changed  chan struct{} // closed when asked or over next changes
}

// Begin starts a login at the site by calling dial, whose questions are passed to the session. The login ends when
// dial returns. It is cancelled when ctx ends, when Cancel is called, or when its time limit has passed.
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
			err = corral.ErrorAt(corral.Forbidden, "login", "%s: the login was cancelled or took longer than %s",
				site.Contact, life)
		}
		s.end(err)
	})
	return s
}

// Wait waits until no login is running any more.
func (ss *Sessions) Wait() { ss.running.Wait() }

// keep adds a session and drops those that ended long ago.
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

// Find returns an owner's session by its name, and the number of the question. Other owners' sessions are not found.
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

// ask asks a question and waits for its answers.
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

// end records that the login has ended.
func (s *Session) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.question, s.over, s.err = nil, true, err
	s.tell()
}

// tell wakes the callers that wait for a change. The caller holds s.mu.
func (s *Session) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Answer passes on the answers to question n. If the question has already been answered, it does nothing.
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

// Next waits for the event after question n: another question, or the end of the login. If ctx ends first, the person
// has disconnected, and the login is cancelled.
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

// onWire returns the API's form of a question.
func onWire(q *gridsite.Question) *api.LoginQuestion {
	wire := &api.LoginQuestion{Name: q.Name, Instruction: q.Instruction, Prompts: []api.LoginPrompt{}}
	for _, p := range q.Prompts {
		wire.Prompts = append(wire.Prompts, api.LoginPrompt(p))
	}
	return wire
}
