package wire

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A peer behind a slow connection receives the whole message, regardless of the time that this takes; a peer that reads
// nothing is given up.
func TestSlowPeerIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c := NewConn(ours)
		defer c.Close()
		body := bytes.Repeat([]byte("x"), 1<<20)
		began := time.Now()
		c.SendFrame(body)
		for left := len(body) + 4; left > 0; {
			<-time.After(writeTimeout / 2)
			n, err := io.ReadFull(theirs, make([]byte, min(left, writePiece)))
			if err != nil {
				t.Fatalf("%v after %v, %d bytes to go", err, time.Since(began), left)
			}
			left -= n
		}
		c.SendFrame(body)
		<-time.After(writeTimeout + time.Second)
		if _, err := theirs.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("reading after %v: %v, want the end", writeTimeout, err)
		}
	})
}

// Finish does not wait long for a slow peer, regardless of the amount of data that remains to be written.
func TestEndOfASlowConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c := NewConn(ours)
		c.SendFrame(make([]byte, 1<<20))
		var peer sync.WaitGroup
		defer peer.Wait()
		peer.Go(func() {
			for err := error(nil); err == nil; {
				<-time.After(time.Second)
				_, err = io.ReadFull(theirs, make([]byte, writePiece))
			}
		})
		began := time.Now()
		c.Finish()
		if took := time.Since(began); took > finishTimeout {
			t.Errorf("finish took %v, want %v at most", took, finishTimeout)
		}
	})
}
