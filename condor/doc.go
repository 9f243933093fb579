// Package condor speaks HTCondor's languages: submit descriptions, configuration, tokens and command lines; its
// sub-packages speak ClassAds and event logs. It runs a personal pool as an ordinary user and is independent of Corral.
//
// Vocabulary. A release is a folder with HTCondor's bin, sbin, libexec and lib. A [Pool] is a folder with
// the configuration, queue and logs of one personal pool, whose daemons (master, shared port, collector,
// negotiator, schedd) share one TCP port. [Tools] runs a release's commands on a pool. A [Token] lets a
// glidein, which runs on a machine that is not ours, advertise itself to the pool, and do nothing else.
//
// The invariant: what HTCondor said is not mixed up with what we do not know. A command that says no
// returns a [*Refused] with HTCondor's own words; after every other error of a command that changes
// something, it may or may not have been done, and the caller has to look before repeating it.
//
// # Where to look
//
// A pool: pool.go starts, stops and examines the daemons, process.go finds them, config.go and pool.conf configure
// them, and remote.go uses a pool that somebody else runs. Who may do what: token.go makes tokens, revoke.go has a pool
// refuse them, account.go and files.go run and write as another user. A worker: glidein.go and glidein.conf configure
// it, and glideinlog.go follows what its daemons write. Jobs: tools.go runs the commands, and submit.go describes what
// they submit.
//
// docs/condor-traps.md lists the surprises of the real programs, with the test of each.
package condor
