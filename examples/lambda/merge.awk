# Adds two sorted tables of word and count: a word that stands in both comes out once.
function left() { if ((getline row < ARGV[1]) <= 0) return 0; split(row, a, " "); return 1 }
function right() { if ((getline row < ARGV[2]) <= 0) return 0; split(row, b, " "); return 1 }
BEGIN {
	l = left(); r = right()
	while (l || r) {
		if (!r || (l && a[1] "" < b[1] "")) { print a[1], a[2]; l = left() }
		else if (!l || a[1] "" > b[1] "") { print b[1], b[2]; r = right() }
		else { print a[1], a[2] + b[2]; l = left(); r = right() }
	}
}
