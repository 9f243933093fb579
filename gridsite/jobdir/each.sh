# each.sh ROOT WIDTH SCRIPT ARG <TAGS: runs a script for each tag, at most WIDTH at a time. Prints a line
# TAG WHY for each that failed, then "end".

exec 3<&0 </dev/null

one() {
	said=$(sh -c "$3" corral "$1" "$tag" "$4" 2>&1 3<&-) || echo "$tag ${said##*$newline}"
}

newline='
'
running=0
while read -r tag <&3; do
	one "$@" &
	running=$((running + 1))
	[ "$running" -lt "$2" ] || { wait && running=0; }
done
wait
echo end
