# Counts the canonical words of 1 to k letters that start in a chunk's own bases (with canonical.awk).
# Output: word, count; in no order.
NR == 1 { own = length($0) }
{ s = s $0 }
END {
	back = reverse(s)
	for (w = 1; w <= k; w++) tally(s, back, own, w, number)
	for (word in number) print word, number[word]
}
