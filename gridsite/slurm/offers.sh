
# What the scripts share that call sbatch. $tag: the job's; $gpus: how many of each node.

# clean runs a command in an environment of its own: sbatch hands it on to the job.
clean() {
	env -i ${PATH+"PATH=$PATH"} ${HOME+"HOME=$HOME"} ${USER+"USER=$USER"} ${LOGNAME+"LOGNAME=$LOGNAME"} \
		${SHELL+"SHELL=$SHELL"} ${LANG+"LANG=$LANG"} ${SLURM_CONF+"SLURM_CONF=$SLURM_CONF"} ${TZ+"TZ=$TZ"} "CORRAL_JOB_TAG=$tag" "$@"
}

# offers says whether this version of sbatch has an option.
offers() {
	[ -n "$help" ] || help=$(clean sbatch --help 2>&1)
	case $help in
	*"$1"*) ;;
	*) return 1 ;;
	esac
}

# call_sbatch adds to its arguments the options that not every version has.
call_sbatch() {
	help=
	! offers --parsable || set -- --parsable "$@"
	! offers --no-requeue || set -- --no-requeue "$@"
	if [ "$gpus" -gt 0 ]; then
		if offers --gpus-per-node; then set -- "--gpus-per-node=$gpus" "$@"; else set -- "--gres=gpu:$gpus" "$@"; fi
	fi
	clean sbatch "$@"
}
