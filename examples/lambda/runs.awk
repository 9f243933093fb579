# Counts equal lines that follow each other: line, how often. (uniq -c without its padding.)
NR > 1 && $0 != last { print last, n; n = 0 }
{ last = $0; n++ }
END { if (NR) print last, n }
