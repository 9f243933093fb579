package store

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
)

// A client that does not get an answer sends its request again, with the same Idempotency-Key. The answer is in the
// same transaction as the change: there is no moment at which a crash leaves one without the other.

// keepAnswers is how long a key is remembered.
const keepAnswers = 30 * 24 * time.Hour

// A OnceKey names a request that may be repeated without being done twice.
type OnceKey struct {
	Actor   string // who asked: keys of different actors never meet
	Key     string // the Idempotency-Key; "" if there is none
	Request string // SHA-256 of method, path and body, hex
}

// An Answer is what was answered to a request.
type Answer struct {
	Status int // of HTTP
	Body   []byte
}

// Once calls do and keeps its answer under key, in the same transaction as what do changes. If the key
// is known with the same Request, do is not called: the kept answer is returned, with true. With another
// Request it is a KeyReused error. Without a Key it only calls do.
//
// Only answers of success are kept: an error of do must be returned from the Write, so that nothing of
// it stays. Answers are forgotten 30 days after they were given.
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

// answer returns what is kept under key, or sql.ErrNoRows.
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

// keep stores a, and forgets what is too old: the table needs no other cleaning.
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
	if err != nil {
		return fmt.Errorf("keeping the answer to key %q: %w", key.Key, err)
	}
	return nil
}

// HasAnswered reports whether an answer is kept under a key of an actor, to whatever request.
func (t *Tx) HasAnswered(actor, key string) (known bool, err error) {
	err = t.row("select exists (select 1 from answers where actor = ? and key = ?)", []any{actor, key}, &known)
	if err != nil {
		return false, fmt.Errorf("looking up key %q: %w", key, err)
	}
	return known, nil
}
