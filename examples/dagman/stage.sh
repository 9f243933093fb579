#!/bin/sh
# PRE: makes the file that the node $1 reads.
seq 3 > "$1.txt"
