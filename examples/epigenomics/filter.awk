# Drops reads of FASTQ of which more than a quarter are bases that the sequencer could not tell: maq lets a read have few
# mismatches in the reference, and each N is one.
{ line[NR % 4] = $0 }
NR % 4 == 0 {
	unknown = gsub(/N/, "N", line[2])
	if (4 * unknown <= length(line[2])) print line[1] "\n" line[2] "\n" line[3] "\n" line[0]
}
