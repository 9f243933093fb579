# Makes two lines of a chunk: its own bases, and the k-1 bases that follow them. Bases are A, C, G, T;
# whatever else stands there (R, Y, N …: not known exactly) becomes N.
BEGIN { part = 0 }
/^>/ { part = 1; next }
{
	s = toupper($0)
	gsub(/[ \t\r]/, "", s)
	gsub(/[^ACGT]/, "N", s)
	seq[part] = seq[part] s
}
END {
	print seq[0]
	print substr(seq[1], 1, k - 1)
}
