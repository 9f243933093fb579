#!/bin/sh
# step.sh plan|apply|run|release WORKFLOW [STATUS]: one step of a workflow of steps, whose plan is in the file
# WORKFLOW.plan. Each step may be repeated after whatever happened to it: a plan that is applied is not applied
# twice, and a run of the same plan is the same run. A run that failed has let its pilots go; its next try begins with
# a plan of its own.
set -eu
file=$2.plan

case $1 in
plan)
	if [ ! -s "$file" ]; then
		corral plan "$2" --deadline "${DEADLINE:-1h}" -q >"$file.new"
		mv "$file.new" "$file"
	fi
	;;
apply) corral plan apply "$(cat "$file")" --wait --timeout 1h -q ;;
run)
	[ -s "$file" ] || { sh "$0" plan "$2" && sh "$0" apply "$2"; }
	# In place of the shell, which would not pass on that it is to end.
	exec corral run "$2" --label plan="$(cat "$file")" --key "run-$(cat "$file")" --cancel-on-interrupt -q
	;;
release)
	# It is the last step, after whatever has failed; then its STATUS is not 0, and it fails too.
	if [ -s "$file" ]; then
		corral plan release "$(cat "$file")" --wait --timeout 10m -q
		mv "$file" "$file.released"
	fi
	exit "${3:-0}"
	;;
*)
	echo "step.sh: no step $1" >&2
	exit 2
	;;
esac
