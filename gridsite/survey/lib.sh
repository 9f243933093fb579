# What each survey needs. $1: a mark that nobody else prints; $2: the directory to be. A survey prints sections:
#
#	MARK begin NAME
#	what a command printed
#	MARK end NAME STATUS its last complaint
#
# Lines outside of sections are of others, such as a greeting, and are skipped.
mark=$1 root=$2
LC_ALL=C
export LC_ALL
unset SLURM_TIME_FORMAT SINFO_FORMAT SINFO_ALL SINFO_PARTITION SLURM_CLUSTERS

# section NAME COMMAND...
section() {
	name=$1
	shift
	printf '\n%s begin %s\n' "$mark" "$name"
	{ why=$("$@" 2>&1 >&3 3>&- </dev/null); } 3>&1
	printf '\n%s end %s %s %s\n' "$mark" "$name" $? "$(printf '%s\n' "$why" | tail -n 1)"
}

# soon COMMAND...: a file server or a daemon that does not answer must not hold up the rest.
soon() {
	if command -v timeout >/dev/null; then
		timeout 20 "$@"
	else
		"$@"
	fi
}

# space: what is free where root is, or where its nearest ancestor is.
space() {
	dir=$root
	while [ ! -e "$dir" ] && [ "$dir" != / ]; do dir=$(dirname -- "$dir"); done
	soon df -P -k -- "$dir"
}

section space space
section quota soon quota -w -p -u -g
