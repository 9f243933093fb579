# submit.sh ROOT TAG NEW WALLTIME GRACE <TAR: prints the job's id. Exit 3: refused, nothing was done.
# TAR holds the job's directory under the name NEW, all modes explicit, so the umask stays the site's.

root=$1 tag=$2 wall=$4 grace=$5
dir=$root/jobs/$tag
control=$dir/.corral
new=$root/jobs/$3

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
