package rest

import (
	"bytes"
	"encoding/json"

	"github.com/corral-pilot/corral/internal/store"
)

// A Head contains the string members of a body's JSON object that are complete within its first 64 KiB and precede
// any longer member.
type Head map[string]string

// Ahead returns the route with a check of a body's head before the rest is read, because a request about a missing
// object need not be read to its end. A member that is not in the head may still follow. The route must refuse
// everything that look refuses.
//
// A request whose answer may be stored under its key is always read, because its object may have been removed since.
func (r Route) Ahead(a *Adapter, look func(*Call, Head) error) Route {
	r.ahead = func(c *Call, head Head) error {
		err := look(c, head)
		if err == nil || c.Key() == "" {
			return err
		}
		known, failed := View(c.Context(), a.DB, func(tx *store.Tx) (bool, error) {
			return tx.HasAnswered(c.Actor(), c.Key())
		})
		if failed == nil && known {
			return nil
		}
		return err
	}
	return r
}

// headOf reads the head of a body from its beginning. It stops at the first unexpected token, because the whole body
// will be validated anyway.
func headOf(begin []byte) Head {
	head := Head{}
	dec := json.NewDecoder(bytes.NewReader(begin))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return head
	}
	for dec.More() {
		name, err := dec.Token()
		key, ok := name.(string)
		var value any
		if err != nil || !ok || dec.Decode(&value) != nil {
			return head
		}
		if text, ok := value.(string); ok {
			head[key] = text
		}
	}
	return head
}
