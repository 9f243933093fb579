package transfer

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/corral-pilot/corral/condor/classad"
)

// A request is a file requested by a job.
type request struct {
	URL  string
	File string // absolute
}

// parseRequests parses consecutive ads in the new syntax, as written by a starter. It uses only Url and LocalFileName,
// both of which must be present.
func parseRequests(text string) (all []request, err error) {
	s := scanner{rest: text}
	for s.space(); s.rest != ""; s.space() {
		r, err := s.request()
		if err != nil {
			return nil, fmt.Errorf("ad %d of the transfers: %w", len(all)+1, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// A scanner parses ads from the beginning of the remaining text.
type scanner struct{ rest string }

func (s *scanner) space() { s.rest = strings.TrimLeft(s.rest, " \t\r\n\x00") }

// take reads one character if it is next.
func (s *scanner) take(c string) bool {
	s.space()
	rest, ok := strings.CutPrefix(s.rest, c)
	s.rest = rest
	return ok
}

// request parses an ad in its brackets.
func (s *scanner) request() (r request, err error) {
	if !s.take("[") {
		return r, errors.New("it does not begin with a bracket")
	}
	for !s.take("]") {
		name, rest, ok := strings.Cut(s.rest, "=")
		if !ok {
			return r, errors.New("it does not end")
		}
		s.rest = rest
		value, err := s.value()
		if err != nil {
			return r, err
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "url":
			r.URL = value
		case "localfilename":
			r.File = value
		}
		s.take(";")
	}
	if r.URL == "" || r.File == "" {
		return r, errors.New("it has no Url or no LocalFileName")
	}
	return r, nil
}

// value parses a quoted text, or the text of any other value.
func (s *scanner) value() (string, error) {
	if !s.take(`"`) {
		end := strings.IndexAny(s.rest, ";]")
		if end < 0 {
			return "", errors.New("it does not end")
		}
		value := strings.TrimSpace(s.rest[:end])
		s.rest = s.rest[end:]
		return value, nil
	}
	var b strings.Builder
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return b.String(), nil
		case c == '\\' && i+1 < len(s.rest):
			i++
			b.WriteByte(unescaped(s.rest[i]))
		default:
			b.WriteByte(c)
		}
	}
	return "", errors.New("a text in it does not end")
}

// unescaped returns the meaning of a character after a backslash.
func unescaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	}
	return c
}

// A result is the outcome of a request.
type result struct {
	request
	Bytes      int64
	Start, End int64 // Unix time
	Err        error // nil: the file was written
}

// format formats a result for the starter. If the transfer failed, the starter puts the URL into the hold reason.
func (r result) format() string {
	scheme, _, _ := strings.Cut(r.URL, "://")
	name := r.URL
	if r.Err != nil {
		name = scheme // the only known part of an invalid URL
		if u, err := url.Parse(r.URL); err == nil {
			name = shown(u)
		}
	}
	ad := classad.Ad{
		"TransferUrl": name, "TransferFileName": r.File, "TransferType": "download", "TransferProtocol": scheme,
		"TransferSuccess": r.Err == nil, "TransferFileBytes": r.Bytes, "TransferTotalBytes": r.Bytes,
		"TransferStartTime": r.Start, "TransferEndTime": r.End,
	}
	if r.Err != nil {
		ad["TransferError"] = r.Err.Error()
	}
	return classad.FormatNew(ad) + "\n"
}

// methodsAd returns the ad in which a plugin lists its methods; with refused it also claims the methods that it
// refuses.
func methodsAd(refused bool) string {
	methods := served
	if refused {
		methods += "," + unserved
	}
	return "MultipleFileSupport = true\nPluginType = \"FileTransfer\"\nPluginVersion = \"1.0\"\n" +
		"SupportedMethods = " + classad.FormatOld(methods) + "\n"
}

// The schemes that run fetches, and those for which other plugins are known.
const (
	served   = "http,https"
	unserved = "ftp,osdf,stash,pelican,dav,davs,root,gsiftp,box,gdrive,onedrive"
)
