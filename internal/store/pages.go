package store

import (
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// pagesKept is how many pages of the database, of 4 KiB, a connection has room for in one piece of memory: as many as
// SQLite caches by itself.
const pagesKept = 500

// After each Write, the readers' pages are out of date, and each of them drops all that it has cached. Where each page
// is a piece of memory of its own, that goes back to the system and is asked of it again; under many writes and reads
// this was a quarter of all that corrald did. SQLite takes the setting only before the first database is opened, so
// it stands here. If it does not take it, everything is only slower.
func init() {
	tls := libc.NewTLS()
	defer tls.Close()
	var none uintptr
	const words = 3
	list := libc.Xmalloc(tls, words*libc.Tsize_t(unsafe.Sizeof(none)))
	if list == 0 {
		return
	}
	defer libc.Xfree(tls, list)
	sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_PAGECACHE, libc.VaList(list, none, int32(0), int32(pagesKept)))
}
