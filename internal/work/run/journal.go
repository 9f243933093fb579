package run

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// The journal is a file of lines: the CRC-32 (Castagnoli) of a record's compact JSON in eight hex digits, a space, and
// the JSON. It only grows: with about 250 bytes per task, it does not need compaction (100,000 tasks: about 25 MB).
//
// A batch is one write(2), so it survives the death of the process as soon as append has returned. There is no fsync,
// because the journal must survive killed processes, not a loss of power.

// lineMax is the maximum length of a line: a clustered job of 100,000 tasks stays below it, and a damaged file cannot
// make the reader use more memory.
const lineMax = 8 << 20

var (
	crcTable = crc32.MakeTable(crc32.Castagnoli)

	errBad    = errors.New("bad record")
	errClosed = errors.New("the run's journal is closed")
)

// journal appends records to an open file. Its methods may be called from any goroutine. Records are written at an
// offset that the journal remembers, not at the file's end, so that the next write overwrites one that failed halfway.
type journal struct {
	mu   sync.Mutex // guards the fields below
	file *os.File   // nil: closed
	end  int64      // offset after the last complete batch
	torn int        // size of the last write if it failed; 0: it succeeded
	buf  bytes.Buffer
}

// openJournal opens or creates the journal at path, and calls replay for each record in it. If a record is bad, because
// its write was interrupted or the file was damaged, this record and all after it are moved to a separate file beside
// the journal, and cut is true: records that have had effects may be missing.
func openJournal(
	lg *slog.Logger, path string, now time.Time, replay func(execution.Record),
) (j *journal, cut bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("opening the run's journal: %w", err)
	}
	good, bad := readJournal(f, replay)
	if errors.Is(bad, errBad) {
		cut = true
		kept := fmt.Sprintf("%s.bad-%s", path, now.UTC().Format("20060102T150405.000"))
		lg.Warn("cutting the journal off after its last good record",
			"journal", path, "reason", bad, "offset", good, "kept", kept)
		bad = quarantine(f, good, kept)
	}
	if bad != nil {
		_ = f.Close()
		return nil, false, fmt.Errorf("reading the run's journal: %w", bad)
	}
	return &journal{file: f, end: good}, cut, nil
}

// readJournal calls replay for each record of r up to the first bad one, and returns the offset after the last good
// one. An error is errBad or an error of r.
func readJournal(r io.Reader, replay func(execution.Record)) (good int64, err error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(lines)
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return good, nil
		case errors.Is(err, io.EOF):
			return good, fmt.Errorf("%w: the last line is incomplete", errBad)
		case err != nil:
			return good, err
		}
		rec, err := decode(line)
		if err != nil {
			return good, fmt.Errorf("%w: %w", errBad, err)
		}
		good += int64(len(line))
		replay(rec)
	}
}

// readLine is like ReadBytes('\n'), but fails on a line longer than lineMax. The line is valid until the next call.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		if line == nil && err == nil {
			return piece, nil
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > lineMax {
			return nil, fmt.Errorf("%w: a line is longer than %d bytes", errBad, lineMax)
		}
	}
}

// decode decodes one line, and refuses it unless its checksum is correct: a damaged record must not change the state.
func decode(line []byte) (execution.Record, error) {
	const head = 9 // eight hex digits and a space
	var rec execution.Record
	if len(line) <= head || line[head-1] != ' ' {
		return rec, errors.New("no checksum")
	}
	sum, err := strconv.ParseUint(string(line[:head-1]), 16, 32)
	if err != nil {
		return rec, errors.New("no checksum")
	}
	body := line[head : len(line)-1]
	if uint32(sum) != checksum(body) {
		return rec, errors.New("wrong checksum")
	}
	return rec, json.Unmarshal(body, &rec)
}

// checksum returns the CRC-32 of a record's JSON. Processors have an instruction for Castagnoli's polynomial.
func checksum(body []byte) uint32 { return crc32.Checksum(body, crcTable) }

// quarantine moves the part of f after offset good to a new file, so that it can still be examined.
func quarantine(f *os.File, good int64, name string) error {
	if _, err := f.Seek(good, io.SeekStart); err != nil {
		return err
	}
	kept, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(kept, f)
	if err := errors.Join(err, kept.Close()); err != nil {
		return err
	}
	return f.Truncate(good)
}

// append writes records as one batch. If it fails, none of them is in the journal.
func (j *journal) append(records ...execution.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return errClosed
	}
	j.buf.Reset()
	encoder := json.NewEncoder(&j.buf)
	for i := range records {
		const head = "00000000 "
		begin := j.buf.Len()
		j.buf.WriteString(head)
		if err := encoder.Encode(&records[i]); err != nil { // it also ends the line
			return fmt.Errorf("encoding a record: %w", err)
		}
		line := j.buf.Bytes()[begin:]
		sum := binary.BigEndian.AppendUint32(nil, checksum(line[len(head):len(line)-1]))
		hex.Encode(line, sum)
	}
	return j.writeLocked()
}

// writeLocked writes the buffer at the journal's end. A failed write may have left part of the batch, which the next
// one overwrites because end has not moved.
func (j *journal) writeLocked() error {
	_, err := j.file.WriteAt(j.buf.Bytes(), j.end)
	if err != nil {
		j.torn = max(j.torn, j.buf.Len())
		_ = j.file.Truncate(j.end) // if this also fails, the part is overwritten or cut off later
		return fmt.Errorf("writing the run's journal: %w", err)
	}
	j.torn = 0
	j.end += int64(j.buf.Len())
	return nil
}

// check returns the reason why records cannot be written. If the last write failed, it tries an empty record of the
// same length: on a full disk, a short one might still fit.
func (j *journal) check(now time.Time) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.torn == 0 || j.file == nil {
		return nil
	}
	body, err := json.Marshal(execution.Record{At: execution.ToMsec(now)})
	if err != nil {
		return fmt.Errorf("encoding a record: %w", err)
	}
	body = append(body, bytes.Repeat([]byte{' '}, min(j.torn, lineMax/2))...)
	j.buf.Reset()
	fmt.Fprintf(&j.buf, "%08x %s\n", checksum(body), body)
	return j.writeLocked()
}

// close closes the file, so that later calls of append fail.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}
