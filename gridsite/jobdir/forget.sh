# forget.sh ROOT TAG NONCE. Exit 3: the job has not ended.

root=$1 tag=$2
dir=$root/jobs/$tag
control=$dir/.corral
old=$root/jobs/.old,$tag,$3

if load && ! over; then
	echo "job $tag has not ended" >&2
	exit 3
fi

# Renamed first: a directory half removed could be taken for one whose job was never started.
[ ! -d "$dir" ] || mv "$dir" "$old" || exit 1
rm -rf "$root"/jobs/.???,"$tag",* 2>/dev/null || {
	chmod -R u+rwx "$root"/jobs/.???,"$tag",* # a job may have made directories that nobody may change
	rm -rf "$root"/jobs/.???,"$tag",*
} || exit 1
rmdir "$root/jobs" "$root" 2>/dev/null
exit 0
