package rest

import (
	"bytes"
	"encoding/json"

	"github.com/corral-pilot/corral/internal/store"
)

// A Head has those members of a body's JSON object that are texts and stand, whole, in its first 64 KiB before any
// longer member.
type Head map[string]string

// Ahead is the route with a look at the head of a body before the rest is read: a request for what does not exist need
// not be read to its end. A member that is not in the head may still follow. What look refuses must be what the route
// would refuse, too.
//
// A request whose answer may be kept under its key is read in any case: what it names may be gone since.
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

// headOf reads the head of a body of which the beginning is there. Whatever is not as expected ends it, because the
// whole body will be judged anyway.
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
