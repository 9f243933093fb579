# Sums up reads.fq, mapview.txt and pileup.txt, which are given in this order.
FNR == 1 { file++ }
file == 1 { if (FNR % 4 == 1) reads++ }
file == 2 { mapped++; strand[$4]++ }
file == 3 {
	positions++
	if ($4 > 0) covered++
	depth += $4
	if ($4 > deepest) deepest = $4
}
END {
	printf "reads                  %d\n", reads
	printf "mapped to the genome   %d (%.1f %%)\n", mapped, 100 * mapped / reads
	printf "of it, forward strand  %d\n", strand["+"]
	printf "bases of the genome    %d\n", positions
	printf "covered                %d (%.1f %%)\n", covered, 100 * covered / positions
	printf "mean depth             %.2f\n", depth / positions
	printf "greatest depth         %d\n", deepest
}
