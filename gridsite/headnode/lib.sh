# What the scripts about a site's root share. $1 is the root.
mark=.corral-site

# missing DIR prints the first directory that mkdir -p would make on the way to DIR; an empty line if DIR is there.
missing() {
	top= a=$1
	while [ ! -e "$a" ]; do
		top=$a
		a=$(dirname -- "$a")
	done
	printf '%s\n' "$top"
}

# made ROOT prints the first directory that was made on the way to a root of ours, as its mark says.
made() { sed -n 's/^made: //p' "$1/$mark" 2>/dev/null; }

# leave ROOT MADE removes the directories above a root that is gone, up to MADE, as far as nothing else is in them.
leave() {
	case $1 in "$2"/*) ;; *) return 0 ;; esac
	[ -n "$2" ] || return 0
	a=$1
	while [ "$a" != "$2" ]; do
		a=$(dirname -- "$a")
		[ "$a" != / ] && rmdir -- "$a" 2>/dev/null || return 0
	done
}

# other DIR OWNER says of a marked directory whose it is, and fails if it has no mark or is OWNER's.
other() {
	[ -e "$1/$mark" ] || return 1
	owner=$(sed -n 's/^owner: //p' "$1/$mark")
	case $owner in "" | "$2") return 1 ;; esac
	echo "$1 belongs to a site of another corrald, that of ${owner#* }: choose another root or, if that one is gone for good, remove it by hand" >&2
}
