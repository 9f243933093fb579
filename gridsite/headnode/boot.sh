# boot.sh ROOT DIR OWNER: makes the root with its mark, and the directory DIR below it. The mark says which directories
# above the root were made for it, so that they can go with it.
umask 077
first=$(made "$1")
[ -n "$first" ] || first=$(missing "$1")
mkdir -p -- "$1" &&
	printf '%s\n' "Corral removes all of this directory together with the site that it belongs to." "owner: $3" \
		"made: $first" >"$1/$mark" &&
	mkdir -p -- "$2"
