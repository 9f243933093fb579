# forget.sh ROOT SCRIPT NONCE <TAGS: runs fork/forget.sh for each job that is not in the queue. Prints TAG WHY for each
# that stays, then "end".

exec 3<&0 </dev/null
slurm squeue -h -u "$me" -t all -o '%A %T %j' || exit 1
queue=$(say "$said" | unended)
newline='
'
while read -r tag <&3; do
	dir=$1/jobs/$tag
	control=$dir/.corral
	case "$queue$newline" in
	*" $tag$newline"*) over || { echo "$tag job $tag has not ended" && continue; } ;;
	esac
	said=$(sh -c "$2" corral "$1" "$tag" "$3" 2>&1 3<&-) || echo "$tag ${said##*"$newline"}"
done
echo end
