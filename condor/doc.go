// Package condor implements HTCondor's formats: submit descriptions, configuration, tokens and command lines; its
// sub-packages implement ClassAds and event logs. It runs a personal pool as an ordinary user and is independent of
// Corral.
//
// Vocabulary. A release is a folder with HTCondor's bin, sbin, libexec and lib. A [Pool] is a folder with the
// configuration, queue and logs of one personal pool, whose daemons (master, shared port, collector, negotiator,
// schedd) share one TCP port. [Tools] runs a release's commands on a pool. A [Token] permits a glidein, which runs on
// another machine, to advertise itself to the pool, and nothing else.
//
// The invariant: a refusal by HTCondor is never confused with an unknown outcome. A command that refuses returns a
// [*Refused] with HTCondor's own words. After any other error of a command that changes something, the change may or
// may not have been made, and the caller must check before repeating the command.
//
// # Where to look
//
// Pools: pool.go starts, stops and examines the daemons, process.go finds them, config.go and pool.conf configure them,
// and remote.go uses a pool run by someone else. Permissions: token.go creates tokens, revoke.go makes a pool refuse
// them, account.go and files.go run and write as another user. Workers: glidein.go and glidein.conf configure them, and
// glideinlog.go follows their daemons' logs. Jobs: tools.go runs the commands, and submit.go describes jobs to submit.
//
// docs/condor-traps.md lists the surprises of the real programs, with the test of each.
package condor
