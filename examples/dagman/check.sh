#!/bin/sh
# POST: notes that the node $1 returned $2, and decides by that.
echo "$1 $2" >> returned.txt
exit "$2"
