# What makes a job's directory; for the scripts submit.sh. Of the caller: $root, $dir, $control, and $new, the
# directory's first name, which is the one in TAR on stdin.

refuse() {
	rm -rf "$new"
	exit 3
}

# build makes the whole directory aside and publishes it by a rename, so that what stands under the
# tag is complete. Where another submission was faster, mv either fails or moves into its directory.
build() {
	command -v setsid >/dev/null || { echo 'setsid: not found' >&2 && refuse; }
	[ -d "$root/jobs" ] || (umask 077 && mkdir -p "$root/jobs") || refuse
	# cd, because the argument of -C is no plain name to tar: a backslash in it would mean something
	(cd "$root/jobs" && tar -x -m -o -f -) || {
		[ -d "$root/jobs" ] || echo "$root/jobs was removed meanwhile" >&2 # by forget.sh
		refuse
	}
	said=$(mv "$new" "$dir" 2>&1) && [ ! -d "$dir/${new##*/}" ] && return
	rm -rf "$new" "$dir/${new##*/}"
	[ -d "$control" ] || { echo "$said" >&2 && refuse; }
}
