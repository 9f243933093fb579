# The control experiment: how many different canonical words would chance alone give? Shuffles the
# genome m times and each time counts the different words of 1 to k letters (with canonical.awk).
# Output: length, words.
#
# The random numbers are those of Park and Miller's minimal standard generator, exact in every awk's
# arithmetic, so that a seed gives the same shuffles everywhere.
{ s = s $0 }
END {
	while (m-- > 0) {
		s = shuffle(s)
		back = reverse(s)
		for (w = 1; w <= k; w++) {
			split("", number)
			tally(s, back, length(s), w, number)
			different = 0
			for (word in number) different++
			print w, different
		}
	}
}

# shuffle exchanges the letters of s (Fisher and Yates) and moves seed on.
function shuffle(s,    n, base, i, j, t, r) {
	gsub(/./, "& ", s) # not every awk splits at the empty string
	n = split(s, base, " ")
	for (i = n; i > 1; i--) {
		seed = (16807 * seed) % 2147483647
		j = seed % i + 1
		t = base[i]; base[i] = base[j]; base[j] = t
	}
	for (i = 1; i <= n; i++) r = r base[i]
	return r
}
