# Cuts a FASTA file into n chunks of whole lines, chunk.00.fa to chunk.(n-1).fa.
#
# A chunk's own lines are followed by a line ">overlap" and the lines after them that hold the next
# k-1 bases: a k-mer belongs to the chunk in which it starts, wherever it ends.
/^>/ { next }
{ line[rows++] = $0 }
END {
	for (c = 0; c < n; c++) {
		file = sprintf("chunk.%02d.fa", c)
		from = int(c * rows / n)
		upto = int((c + 1) * rows / n)
		for (i = from; i < upto; i++) print line[i] > file
		print ">overlap" > file
		for (bases = 0; i < rows && bases < k - 1; i++) {
			print line[i] > file
			bases += length(line[i])
		}
		close(file)
	}
}
