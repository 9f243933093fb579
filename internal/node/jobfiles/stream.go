package jobfiles

import (
	"strconv"
	"strings"
)

// A worker job is an HTCondor job whose program takes tasks from corrald for as long as there are some. What follows
// is said between corrald, which submits it, the glidein, on which it runs, and its program, the pilot.
const (
	StreamCommand = "stream"      // the pilot's command; its argument is the job's number
	StreamFile    = "stream.json" // comes with the job: a Stream
	// StreamAttribute of a worker job's ad names the stream that it belongs to; other jobs do not have it.
	StreamAttribute = "CorralStream"
	// Attributes of a glidein's ad: the addresses of corrald's worker port, with blanks between them, and the digest of
	// its certificate.
	HomeAttribute, HomeDigestAttribute = "CorralHome", "CorralHomeDigest"
)

// A Stream is what a worker job knows before it has a slot. The rest is in the ad of its glidein.
type Stream struct {
	Tag   string `json:"tag"`
	Token string `json:"token"`
}

// StreamWorker names the worker of a worker job: by the worker of the pool on which it runs, and by its number.
func StreamWorker(glidein string, number int64) string {
	return glidein + StreamMark + strconv.FormatInt(number, 10)
}

// OnGlidein returns the worker of the pool on which a worker job's worker runs, and any other worker as it is.
func OnGlidein(worker string) string {
	glidein, _, _ := strings.Cut(worker, StreamMark)
	return glidein
}

// StreamMark is between the two parts of such a name.
const StreamMark = "+"
