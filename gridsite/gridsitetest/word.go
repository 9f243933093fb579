package gridsitetest

import "pgregory.net/rapid"

// Word generates arbitrary arguments, including those that shells interpret.
var Word = rapid.OneOf(
	rapid.SampledFrom([]string{"", "-", "--", "-n", "'", "''", `\`, `\0101`, "%s", "\n", "\n\n", " ", "$HOME", "`id`",
		"$(id)", "*", "~", "é", "!", "!!", `"`, "a'b"}),
	rapid.Map(rapid.SliceOf(rapid.ByteRange(1, 255)), func(b []byte) string { return string(b) }),
	rapid.StringMatching(`['"\\$\x60 \n;&|*?~#!%-]{0,12}`),
)
