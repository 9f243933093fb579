package wfformat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// repeatedKey returns the first repeated key in an object of a value: the decoder would silently use the key's last
// value. text is a JSON value that was decoded, and at is the position of the repeated key.
//
// Almost no value contains such a key, and a file contains millions of values. Therefore mayRepeat checks first; it
// takes 1 % of the time of decoding, but may return false positives.
func repeatedKey(text []byte) (at int, key string, ok bool) {
	if !mayRepeat(text) {
		return 0, "", false
	}
	return findRepeated(text)
}

// mayRepeat reports whether an object may have a repeated key. Keys are hashed into 64 classes by their length and
// their first and last letters; the keys of one WfFormat object are in different classes.
func mayRepeat(text []byte) bool {
	var few [8]uint64 // classes of the keys of each nested object
	open := few[:0]
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			open = append(open, 0)
		case '}':
			open = open[:len(open)-1]
		case '"':
			end := stringEnd(text, i)
			if key := text[i+1 : end]; isKey(text, end) {
				if len(key) == 0 {
					return true
				}
				first, last := key[0], key[len(key)-1]
				class := uint64(1) << ((2*len(key) + 17*int(first|' ') + 7*int(last|' ')) % 64)
				top := &open[len(open)-1]
				if *top&class != 0 || isOdd(key) {
					return true
				}
				*top |= class
			}
			i = end
		}
	}
	return false
}

// isOdd reports whether a key may be equal to a key of a different length, which is possible if it contains escapes, or
// letters that are not ASCII.
func isOdd(key []byte) bool {
	for _, c := range key {
		if c == '\\' || c >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// stringEnd returns the position of the closing quote of the string that begins at begin.
func stringEnd(text []byte, begin int) int {
	for i := begin + 1; ; i++ {
		i += bytes.IndexByte(text[i:], '"')
		escapes := 0
		for text[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

// isKey reports whether the string that ends at end is a key.
func isKey(text []byte, end int) bool {
	for i := end + 1; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return text[i] == ':'
	}
	return false
}

// A keyAt is the hash and the position of a key of an object.
type keyAt struct {
	hash uint64
	at   int
}

// findRepeated does the same as repeatedKey, but without calling mayRepeat. In field names it ignores case, like the
// decoder.
func findRepeated(text []byte) (at int, key string, ok bool) {
	type object struct {
		first int // index of its first key
		names bool
	}
	var open []object
	var keys []keyAt // keys of all open objects
	seed, last := maphash.MakeSeed(), ""
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			open = append(open, object{len(keys), last == "env" || last == "names" || last == "categories"})
		case '}':
			first := open[len(open)-1].first
			if at := second(keys[first:]); at >= 0 {
				return at, unquoted(text[at : stringEnd(text, at)+1]), true
			}
			keys, open = keys[:first], open[:len(open)-1]
		case '"':
			end := stringEnd(text, i)
			if isKey(text, end) {
				last = unquoted(text[i : end+1])
				name := last
				if !open[len(open)-1].names {
					name = strings.Map(folded, last)
				}
				keys = append(keys, keyAt{maphash.String(seed, name), i})
			}
			i = end
		}
	}
	return 0, "", false
}

// second returns the position of the first key that repeats an earlier one, or -1.
func second(keys []keyAt) int {
	slices.SortFunc(keys, func(a, b keyAt) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.at, b.at)) })
	found := -1
	for k := 1; k < len(keys); k++ {
		if keys[k].hash == keys[k-1].hash && (found < 0 || keys[k].at < found) {
			found = keys[k].at
		}
	}
	return found
}

func unquoted(text []byte) (s string) {
	_ = json.Unmarshal(text, &s) // the decoder accepted it
	return s
}

// folded returns the smallest of the letters that differ from r only in case.
func folded(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
