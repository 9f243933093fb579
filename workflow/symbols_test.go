package workflow

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// A symbols assigns the same numbers to texts as a map would.
func TestSymbols(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s symbols
		numbers := map[string]int32{}
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			text := strconv.Itoa(rapid.IntRange(0, 200).Draw(t, "text"))
			if rapid.Bool().Draw(t, "empty") {
				text = text[1:]
			}
			want, known := numbers[text]
			if got, ok := s.find(text); ok != known || ok && got != want {
				t.Fatalf("find(%q) = %d, %v, want %d, %v", text, got, ok, want, known)
			}
			if !known {
				want = int32(len(numbers))
				numbers[text] = want
			}
			if got := s.number(text); got != want || s.of(got) != text {
				t.Fatalf("number(%q) = %d, want %d", text, got, want)
			}
		}
	})
}
