package store

// Actor is the name under which corrald itself makes changes. It appears in histories, and as the owner of objects
// that no user requested.
const Actor = "corrald"
