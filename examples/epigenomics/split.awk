# Deals reads of FASTQ out to n files, reads.00.fq to reads.(n-1).fq, as many to each, in their order, and cuts each read to
# its first bases: the sequencers of 2008 read no more than 36.
NR == 1 { if (n < 1 || bases < 1) { print "split.awk wants -v n=FILES -v bases=LENGTH -v reads=ALL" > "/dev/stderr"; exit 2 } }
NR % 4 == 1 {
	now = sprintf("reads.%02d.fq", int(n * int(NR / 4) / reads))
	if (now != file && file != "") close(file)
	file = now
}
NR % 2 == 1 { print > file; next }
{ print substr($0, 1, bases) > file }
END { if (NR != 4 * reads) { print "split.awk: " NR / 4 " reads, not " reads > "/dev/stderr"; exit 1 } }
