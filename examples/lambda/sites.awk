# Keeps of a table of word and count the words that an enzyme cuts at. Output: word, enzyme, count.
FILENAME == "enzymes.txt" { enzyme[$1] = $2; next }
$1 in enzyme { print $1, enzyme[$1], $2 }
