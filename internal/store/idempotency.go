package store

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// A client that gets no answer repeats its request with the same Idempotency-Key. The answer is stored in the same
// transaction as the change, so a crash can never leave one without the other.

// keepAnswers is how long a key is remembered.
const keepAnswers = 30 * 24 * time.Hour

// A OnceKey identifies a request that may be repeated without being executed twice.
type OnceKey struct {
	Actor   string // the caller: keys of different actors are independent
	Key     string // the Idempotency-Key; "" if there is none
	Request string // SHA-256 of method, path and body, hex
}

// An Answer is the stored answer to a request.
type Answer struct {
	Status int // HTTP status
	Body   []byte
}

// Once calls do and stores its answer under key, in the same transaction as the changes that do makes. If the key is
// already stored with the same Request, Once does not call do and returns the stored answer and true. With another
// Request it returns a KeyReused error. Without a Key it only calls do.
//
// Only successful answers are stored: an error of do must be returned from the Write, so that all its changes are
// rolled back. Answers are deleted after 30 days.
func (t *Tx) Once(key OnceKey, do func() (Answer, error)) (Answer, bool, error) {
	if key.Key == "" {
		answer, err := do()
		return answer, false, err
	}
	answer, err := t.answer(key)
	if err == nil {
		return answer, true, nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return Answer{}, false, err
	}
	if answer, err = do(); err != nil {
		return Answer{}, false, err
	}
	return answer, false, t.keep(key, answer)
}

// answer returns the answer stored under key, or sql.ErrNoRows.
func (t *Tx) answer(key OnceKey) (Answer, error) {
	var a Answer
	var request string
	err := t.row(`
		select
			request,
			status,
			body
		from answers
		where actor = ? and key = ? and at_ms > ?`,
		[]any{key.Actor, key.Key, t.now.Add(-keepAnswers).UnixMilli()}, &request, &a.Status, &a.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("looking up key %q: %w", key.Key, err)
	}
	if request != key.Request {
		return Answer{}, corral.Errorf(corral.KeyReused, "key %q was used before with another request", key.Key)
	}
	return a, nil
}

// keep stores a and deletes expired answers: the table needs no other cleanup.
func (t *Tx) keep(key OnceKey, a Answer) error {
	_, err := t.exec("delete from answers where at_ms <= ?", t.now.Add(-keepAnswers).UnixMilli())
	if err != nil {
		return fmt.Errorf("forgetting old keys: %w", err)
	}
	body := a.Body
	if body == nil {
		body = []byte{} // an empty answer is an answer, not null
	}
	_, err = t.exec(`
		insert into answers (
			actor,
			key,
			request,
			status,
			body,
			at_ms)
		values (?, ?, ?, ?, ?, ?)`,
		key.Actor, key.Key, key.Request, a.Status, body, t.now.UnixMilli())
	return wrap.Errorf(err, "keeping the answer to key %q", key.Key)
}

// HasAnswered reports whether an answer is stored under an actor's key, for any request.
func (t *Tx) HasAnswered(actor, key string) (known bool, err error) {
	err = t.row("select exists (select 1 from answers where actor = ? and key = ?)", []any{actor, key}, &known)
	return known, wrap.Errorf(err, "looking up key %q", key)
}
