# sweep.sh ROOT BEFORE: removes the root. One that was not ours BEFORE is removed only if it has our mark.
[ -n "$2" ] || [ -e "$1/$mark" ] || exit 0
rm -rf -- "$1"
