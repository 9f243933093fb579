package archtest

// exemptions lists what may be over a budget, and why. A key is "FILE NAME", with NAME that of the
// function, method or interface, or "file"; or "type PACKAGE.NAME".
var exemptions = map[string]string{
	"type api.Client":                      "a method for each call of the REST interface",
	"type embedded/worker.Config":          "what the two kinds of processes that are workers know before they know anybody",
	"type internal/decide/reconcile.World": "what is known of a site: each field is a part that a decision may depend on",
	"type internal/store.DB":               "the file, its transactions, its checks and its copies, a method each",
	"type internal/store.WholeTx":          "each is one line: the list of what may be done over the rows of all owners",
	"type internal/store.Tx":               "a method for each thing that is read or changed in a transaction; the rules are the root's",
}
