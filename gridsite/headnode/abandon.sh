# abandon.sh ROOT: removes a root that has our mark, or that had no room for it.
first=$(made "$1")
if [ -s "$1/$mark" ]; then rm -rf -- "$1"; else rm -f -- "$1/$mark"; rmdir -- "$1" 2>/dev/null || [ ! -e "$1" ]; fi &&
	leave "$1" "$first"
