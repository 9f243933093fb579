# boot.sh ROOT DIR OWNER: makes the root with its mark, and the directory DIR below it.
umask 077
mkdir -p -- "$1" &&
	printf '%s\n' "Corral removes all of this directory together with the site that it belongs to." "owner: $3" >"$1/$mark" &&
	mkdir -p -- "$2"
