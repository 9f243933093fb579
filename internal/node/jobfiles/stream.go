package jobfiles

import (
	"strconv"
	"strings"
)

// A worker job is an HTCondor job whose program receives tasks from corrald as long as there are tasks. The definitions
// below are shared by corrald, which submits the job, the glidein on which it runs, and its program, the pilot.
const (
	StreamCommand = "stream"      // the pilot's command; its argument is the job's number
	StreamFile    = "stream.json" // a file that is transferred with the job; contains a Stream
	// StreamAttribute names a worker job's stream in the job's ad; other jobs do not have it.
	StreamAttribute = "CorralStream"
	// Attributes of a glidein's ad: the addresses of corrald's worker port, separated by blanks, and the digest of its
	// certificate.
	HomeAttribute, HomeDigestAttribute = "CorralHome", "CorralHomeDigest"
	// SpeedAttribute names the speed of a glidein's hosts in its ad, according to its plan. It is not CorralSpeed,
	// which the glidein measures.
	SpeedAttribute = "CorralSiteSpeed"
)

// A Stream is the information that a worker job has before it is assigned a slot. All other information is in the ad of
// its glidein.
type Stream struct {
	Tag   string `json:"tag"`
	Token string `json:"token"`
}

// StreamWorker returns the name of a worker job's worker, which consists of the name of the pool worker on which it
// runs and the job's number.
func StreamWorker(glidein string, number int64) string {
	return glidein + StreamMark + strconv.FormatInt(number, 10)
}

// OnGlidein returns the pool worker on which a worker job's worker runs; it returns any other worker's name unchanged.
func OnGlidein(worker string) string {
	glidein, _, _ := strings.Cut(worker, StreamMark)
	return glidein
}

// StreamMark separates the two parts of such a name.
const StreamMark = "+"
