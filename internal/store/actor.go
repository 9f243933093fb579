package store

// Actor is the name under which corrald itself changes things: in histories, and as the owner of what no user asked
// for.
const Actor = "corrald"
