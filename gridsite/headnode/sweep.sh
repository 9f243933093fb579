# sweep.sh ROOT BEFORE: removes the root, and the directories above it that were made for it and are empty now. One that
# was not ours BEFORE is removed only if it has our mark.
[ -n "$2" ] || [ -e "$1/$mark" ] || exit 0
first=$(made "$1")
rm -rf -- "$1" && leave "$1" "$first"
