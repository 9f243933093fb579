package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/google/go-cmp/cmp"
)

// key returns an idempotency key for a request that is identified by one letter.
func key(k, request string) store.OnceKey {
	return store.OnceKey{Actor: actor, Key: k, Request: strings.Repeat(request, 64)}
}

// createOnce creates a site under a key. The answer contains its id.
func (w *world) createOnce(k store.OnceKey, name string) (answer store.Answer, known bool, err error) {
	err = storetest.All(w.db).Write(w.t.Context(), actor, func(tx *store.Tx) (err error) {
		answer, known, err = tx.Once(k, func() (store.Answer, error) {
			s, err := tx.CreateSite(newSite(name))
			return store.Answer{Status: 201, Body: fmt.Append(nil, s.ID)}, err
		})
		return err
	})
	return answer, known, err
}

func TestOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, known, err := w.createOnce(key("k1", "a"), "one")
	if err != nil || known {
		t.Fatalf("first: known %v, %v", known, err)
	}
	again, known, err := w.createOnce(key("k1", "a"), "one")
	if diff := cmp.Diff(first, again); diff != "" || err != nil || !known {
		t.Errorf("again: known %v, %v %s", known, err, diff)
	}
	if _, _, err := w.createOnce(key("k1", "b"), "two"); corral.KindOf(err) != corral.KeyReused {
		t.Errorf("another request: %v, want %s", err, corral.KeyReused)
	}
	other := key("k1", "b")
	other.Actor = "grace"
	if _, known, err := w.createOnce(other, "three"); err != nil || known {
		t.Errorf("another actor: known %v, %v", known, err)
	}
	for _, name := range []string{"four", "five"} {
		if _, known, err := w.createOnce(key("", "a"), name); err != nil || known {
			t.Errorf("no key: known %v, %v", known, err)
		}
	}
}

func TestOnceKeepsAnEmptyAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, want := range []bool{false, true} {
		w.write(func(tx *store.Tx) error {
			a, known, err := tx.Once(key("k", "a"), func() (store.Answer, error) { return store.Answer{Status: 204}, nil })
			if known != want || a.Status != 204 || len(a.Body) != 0 {
				t.Errorf("known %v, answer %v", known, a)
			}
			return err
		})
	}
}

func TestOnceKeepsNoFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boom := errors.New("boom")
	err := storetest.All(w.db).Write(t.Context(), actor, func(tx *store.Tx) error {
		_, _, err := tx.Once(key("k", "a"), func() (store.Answer, error) { return store.Answer{}, boom })
		return err
	})
	if !errors.Is(err, boom) {
		t.Errorf("Write = %v, want %v", err, boom)
	}
	if _, known, err := w.createOnce(key("k", "b"), "one"); err != nil || known {
		t.Errorf("after a failure: known %v, %v", known, err)
	}
}

// Of many simultaneous identical requests one is executed, and all get the same answer.
func TestOnceAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answers := make([]store.Answer, 16)
	var asking sync.WaitGroup
	for i := range answers {
		asking.Go(func() {
			var err error
			if answers[i], _, err = w.createOnce(key("k", "a"), "one"); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	for _, a := range answers[1:] {
		if diff := cmp.Diff(answers[0], a); diff != "" {
			t.Error(diff)
		}
	}
}

func TestOnceForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, _, err := w.createOnce(key("k", "a"), "one"); err != nil {
			t.Fatal(err)
		}
		<-time.After(30*24*time.Hour - time.Second)
		if _, known, err := w.createOnce(key("k", "a"), "two"); !known || err != nil {
			t.Errorf("after nearly 30 days: known %v, %v", known, err)
		}
		<-time.After(time.Second)
		if _, known, err := w.createOnce(key("k", "b"), "three"); known || err != nil {
			t.Errorf("after 30 days: known %v, %v", known, err)
		}
		var kept int
		if err := raw(t, w.path).QueryRow("select count(*) from answers").Scan(&kept); err != nil || kept != 1 {
			t.Errorf("%d answers are kept, %v, want 1", kept, err)
		}
	})
}
