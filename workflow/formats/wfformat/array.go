package wfformat

import (
	"cmp"
	"errors"

	"github.com/corral-pilot/corral/workflow"
)

// An element is an element of an array together with the place at which it begins.
type element[T any] struct {
	value T
	at    workflow.Place
}

// aheadBytes is the maximum amount of text in a batch of several elements.
const aheadBytes = 64 << 10

// array returns a field that reads an array of Ts and calls take for each element in order. Decoding the text is more
// than half of the work, so it is done in a separate goroutine that is a few batches of elements ahead. Until the array
// has been read, only that goroutine may read the document; take must not read it.
func array[T any](d *document, take func(v *T, at workflow.Place) error) field {
	return func(path string) error {
		batches, stop := make(chan []element[T], 1), make(chan struct{})
		var broken error // error in the text; valid once batches is closed
		go func() {
			defer close(batches)
			broken = decode(d, path, batches, stop)
		}()
		var refused error
		for batch := range batches {
			for i := 0; i < len(batch) && refused == nil; i++ {
				if refused = take(&batch[i].value, batch[i].at); refused != nil {
					close(stop)
				}
			}
		}
		return cmp.Or(refused, broken)
	}
}

var errStopped = errors.New("no caller takes more elements")

// decode reads an array and sends its elements, until the array ends, an error occurs, or stop is closed. Elements that
// precede an error are still sent.
func decode[T any](d *document, path string, batches chan<- []element[T], stop <-chan struct{}) error {
	var batch []element[T]
	from := d.dec.InputOffset()
	send := func() error {
		select {
		case batches <- batch:
			batch, from = make([]element[T], 0, len(batch)), d.dec.InputOffset()
			return nil
		case <-stop:
			return errStopped
		}
	}
	inside := path + "[]"
	err := d.within('[', ']', path, func() (err error) {
		batch = append(batch, element[T]{})
		last := &batch[len(batch)-1]
		if last.at, err = read(d, inside, &last.value); err != nil {
			batch = batch[:len(batch)-1]
			return err
		}
		if d.dec.InputOffset()-from < aheadBytes {
			return nil
		}
		return send()
	})
	return cmp.Or(send(), err)
}
