// Package heap implements a priority queue.
package heap

import (
	"cmp"
	"slices"
)

// A Heap is a priority queue whose first value is the smallest. The order of equal values is undefined.
type Heap[T any] struct {
	items  []T
	before func(a, b T) bool
}

// New returns an empty heap ordered by before.
func New[T any](before func(a, b T) bool) Heap[T] { return Heap[T]{before: before} }

// Ordered returns an empty heap of values in their natural order.
func Ordered[T cmp.Ordered]() Heap[T] { return New(func(a, b T) bool { return a < b }) }

// Len returns the number of values.
func (h *Heap[T]) Len() int { return len(h.items) }

// Values returns a copy of the values, in undefined order.
func (h *Heap[T]) Values() []T { return slices.Clone(h.items) }

// First returns the first value; the heap must not be empty.
func (h *Heap[T]) First() T { return h.items[0] }

// Push adds a value.
func (h *Heap[T]) Push(x T) {
	h.items = append(h.items, x)
	for i := len(h.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.before(h.items[i], h.items[parent]) {
			break
		}
		h.items[i], h.items[parent] = h.items[parent], h.items[i]
		i = parent
	}
}

// Pop removes the first value; the heap must not be empty.
func (h *Heap[T]) Pop() T {
	first, last := h.items[0], len(h.items)-1
	h.items[0] = h.items[last]
	h.items = h.items[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && h.before(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.before(h.items[child], h.items[i]) {
			return first
		}
		h.items[i], h.items[child] = h.items[child], h.items[i]
		i = child
	}
}
