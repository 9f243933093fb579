# submit.sh ROOT TAG NEW WALLTIME GRACE <TAR: prints the job's id. Exit 3: refused, nothing was done.
# TAR holds the job's directory under the name NEW, all modes explicit, so the umask stays the site's.

root=$1 tag=$2 wall=$4 grace=$5
dir=$root/jobs/$tag
control=$dir/.corral
new=$root/jobs/$3

refuse() {
	rm -rf "$new"
	exit 3
}

# build makes the whole directory aside and publishes it by a rename, so that what stands under the
# tag is complete. Where another submission was faster, mv either fails or moves into its directory.
build() {
	command -v setsid >/dev/null || { echo 'setsid: not found' >&2 && refuse; }
	[ -d "$root/jobs" ] || (umask 077 && mkdir -p "$root/jobs") || refuse
	tar -x -m -o -f - -C "$root/jobs" || {
		[ -d "$root/jobs" ] || echo "$root/jobs was removed meanwhile" >&2 # by forget.sh
		refuse
	}
	said=$(mv "$new" "$dir" 2>&1) && [ ! -d "$dir/${new##*/}" ] && return
	rm -rf "$new" "$dir/${new##*/}"
	[ -d "$control" ] || { echo "$said" >&2 && refuse; }
}

# start starts a leader in a session of its own and a clean environment, and returns when it has
# claimed the job or given up: until then it holds the pipe of the command substitution open.
start() {
	set -- env -i ${PATH+"PATH=$PATH"} ${HOME+"HOME=$HOME"} ${USER+"USER=$USER"} ${LANG+"LANG=$LANG"} \
		${TMPDIR+"TMPDIR=$TMPDIR"} "CORRAL_JOB_TAG=$tag" "$@"
	opened=$("$@" </dev/null 2>>"$control/log")
}

# With -f setsid forks by itself. Where it has no -f, the shell puts it in the background, and the job
# ignores SIGINT and SIGQUIT as everything does that a shell starts so.
launch() {
	start setsid -f sh "$control/run" "$dir" "$wall" "$grace"
	load || start sh -c 'setsid "$@" &' sh sh "$control/run" "$dir" "$wall" "$grace"
}

[ -d "$control" ] || build
load || launch
load || { cat "$control/log" >&2 && exit 1; }
echo "$pid.$since"
