#!/bin/sh
# PRE: says in $1.try which try, $2, this is.
echo "$2" > "$1.try"
