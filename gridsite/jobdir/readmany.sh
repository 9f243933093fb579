# readmany.sh ROOT BLOCKS NAME... <TAGS: prints those files of jobs' directories that there are. Of one longer
# than BLOCKS times 512 bytes a line "TAG/NAME" and exactly its last so many bytes; then "tar" and an archive of
# the others, if there are any; then "end". tar keeps to the sizes in its headers, though a file may grow.

exec 3<&0 </dev/null
root=$1 blocks=$2
shift 2
names=$*
set --
while read -r tag <&3; do
	for name in $names; do
		[ ! -f "$root/jobs/$tag/$name" ] || set -- "$@" "$tag/$name"
	done
done
if [ "$#" -gt 0 ]; then
	cd "$root/jobs" || exit 1
	for file in $(find "$@" -prune -size +"$blocks"); do
		echo "$file"
		tail -c $((512 * blocks)) "$file"
	done
	set -- $(find "$@" -prune ! -size +"$blocks")
	[ "$#" -eq 0 ] || { echo tar && tar -c -f - "$@"; }
fi
echo end
