# read.sh ROOT TAG NAME BYTES: prints the last BYTES of a regular file. Exit 4: there is none.

file=$1/jobs/$2/$3
[ -f "$file" ] || exit 4
exec tail -c "$4" "$file"
