# Writes the report from bases.txt, spectrum.txt, chance.txt, top.txt, histogram.txt and sites.txt, told
# apart by their names.
FILENAME == "bases.txt" { base[$1] = $2 }
FILENAME == "chance.txt" { chance[$1] = $2 }
FILENAME == "spectrum.txt" { spectrum[++lengths] = $0 }
FILENAME == "top.txt" { top[++tops] = sprintf("%-10s%5d", $1, $2) }
FILENAME == "histogram.txt" { bar[++bars] = sprintf("%5d times%8d", $1, $2) }
FILENAME == "sites.txt" { site[++sites] = sprintf("%-10s%-10s%5d", $2, $1, $3) }
END {
	print "Enterobacteria phage lambda, NC_001416"
	all = base["A"] + base["C"]
	printf "%d bases, GC content %.2f %%\n", all, 100 * base["C"] / all
	print "\nCanonical words (k-mers), and how many different ones a shuffled genome has"
	printf "%4s%10s%11s%11s%8s%8s\n", "k", "words", "different", "shuffled", "once", "most"
	for (i = 1; i <= lengths; i++) {
		split(spectrum[i], f, " ")
		printf "%4d%10d%11d%11.1f%8d%8d\n", f[1], f[2], f[3], chance[f[1]], f[4], f[5]
	}
	list("Most frequent words of 8 letters", top, tops)
	list("Words of 8 letters by how often they occur", bar, bars)
	list("Restriction sites", site, sites)
}

function list(title, line, n,    i) {
	print "\n" title
	for (i = 1; i <= n; i++) print line[i]
}
