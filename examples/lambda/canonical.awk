# Functions for canonical k-mers: a word and its reverse complement are the same place on the two
# strands, so the alphabetically first stands for both.

# tally adds the canonical words of k letters that start in the first own bases of s to number; back is
# the reverse complement of s. A word with an N is left out.
function tally(s, back, own, k, number,    len, i, word, other) {
	len = length(s)
	for (i = 1; i <= own && i + k - 1 <= len; i++) {
		word = substr(s, i, k)
		other = substr(back, len - i - k + 2, k)
		if (word !~ /N/) number[word < other ? word : other]++
	}
}

# reverse returns the reverse complement of s.
function reverse(s,    pair, i, r) {
	pair["A"] = "T"; pair["C"] = "G"; pair["G"] = "C"; pair["T"] = "A"; pair["N"] = "N"
	for (i = length(s); i > 0; i--) r = r pair[substr(s, i, 1)]
	return r
}
