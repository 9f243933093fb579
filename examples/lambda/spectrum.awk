# Sums a table of word and count up by the length of the words: how many words, how many different
# ones, how many that occur once, and the count of the most frequent.
{
	k = length($1)
	if (k > longest) longest = k
	words[k] += $2
	different[k]++
	if ($2 == 1) once[k]++
	if ($2 > most[k]) most[k] = $2
}
END { for (k = 1; k <= longest; k++) print k, words[k], different[k], once[k] + 0, most[k] }
