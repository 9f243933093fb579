# check.sh ROOT OWNER BEFORE: refuses a root that is, or is in, that of another owner, or that has something in it and is not
# marked as ours, unless it was ours BEFORE. It makes and removes a directory in the nearest ancestor that exists.
a=$1
while :; do
	other "$a" "$2" && exit 1
	[ "$a" != / ] || break
	a=$(dirname -- "$a")
done
d=$1
while [ ! -e "$d" ]; do d=$(dirname -- "$d"); done
[ -d "$d" ] || { echo "$d is not a directory" >&2; exit 1; }
if [ "$d" = "$1" ] && [ -z "$3" ] && [ ! -e "$d/$mark" ] && [ -n "$(ls -A -- "$d")" ]; then
	echo "it is not empty, and removing the site would remove all that is in it" >&2
	exit 1
fi
mkdir -- "$d/.corral-$$" && rmdir -- "$d/.corral-$$"
