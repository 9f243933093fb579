# What the scripts about a site's root share. $1 is the root.
mark=.corral-site

# other DIR OWNER says of a marked directory whose it is, and fails if it has no mark or is OWNER's.
other() {
	[ -e "$1/$mark" ] || return 1
	owner=$(sed -n 's/^owner: //p' "$1/$mark")
	case $owner in "" | "$2") return 1 ;; esac
	echo "$1 belongs to a site of another corrald, that of ${owner#* }: choose another root or, if that one is gone for good, remove it by hand" >&2
}
