// Package condor speaks HTCondor's languages: ClassAds, event logs, submit descriptions, configuration,
// tokens and command lines. It runs a personal pool as an ordinary user and knows nothing of Corral.
//
// Vocabulary. A release is a folder with HTCondor's bin, sbin, libexec and lib. A [Pool] is a folder with
// the configuration, queue and logs of one personal pool, whose daemons (master, shared port, collector,
// negotiator, schedd) share one TCP port. [Tools] runs a release's commands on a pool. A [Token] lets a
// glidein, which is somebody else's machine, advertise itself to the pool, and do nothing else. An [Ad] is
// a ClassAd; an [Event] is a record of the log that HTCondor keeps of a job.
//
// The invariant: what HTCondor said is not mixed up with what we do not know. A command that says no
// returns a [*Refused] with HTCondor's own words; after every other error of a command that changes
// something, it may or may not have been done, and one has to look before repeating it.
package condor
