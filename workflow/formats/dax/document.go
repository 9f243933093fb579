package dax

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
)

// A document is an XML text that is read token by token. Compared with the XML decoder, it also enforces limits, checks
// that the text has a single root, and returns errors with file and line.
type document struct {
	name  string
	dec   *xml.Decoder
	text  *source
	depth int // depth of the current element; 1 for the root
	began int // line at which the last token began
}

// newDocument returns a document that reads r; name is the file name for errors, and most limits the bytes of an
// element below the root.
func newDocument(r io.Reader, name string, most int64) *document {
	text := &source{r: bufio.NewReaderSize(r, 64<<10), most: most, left: most}
	dec := xml.NewDecoder(text)
	dec.CharsetReader = func(encoding string, text io.Reader) (io.Reader, error) {
		if strings.EqualFold(encoding, "us-ascii") || strings.EqualFold(encoding, "ascii") {
			return text, nil // a subset of UTF-8
		}
		return nil, fmt.Errorf("the encoding %q is not supported; convert the file to UTF-8", encoding)
	}
	return &document{name: name, dec: dec, text: text}
}

// maxDepth is the maximum depth to which elements may be nested. DAX itself uses four levels.
const maxDepth = 100

// element calls inside for each child element and each text of the element that was begun last, up to that element's
// end. inside must read each child element to its end, with element or skip.
func (d *document) element(inside func(xml.Token) error) error {
	if d.depth++; d.depth > maxDepth {
		return d.here().Errorf("elements are nested more than %d deep", maxDepth)
	}
	for {
		if d.depth == 1 {
			d.text.left = d.text.most
		}
		token, err := d.next()
		if err != nil {
			return err
		}
		if _, ends := token.(xml.EndElement); ends {
			d.depth--
			return nil
		}
		if err := inside(token); err != nil {
			return err
		}
	}
}

// skip reads the element that was begun last to its end.
func (d *document) skip() error {
	return d.element(func(token xml.Token) error {
		if _, begins := token.(xml.StartElement); begins {
			return d.skip()
		}
		return nil
	})
}

// children calls each for every child element of the element that was begun last, and refuses text between them.
func (d *document) children(each func(e xml.StartElement) error) error {
	return d.element(func(token xml.Token) error {
		switch t := token.(type) {
		case xml.StartElement:
			return each(t)
		case xml.CharData:
			if text := bytes.TrimSpace(t); len(text) > 0 {
				return d.of(t).Errorf("there is text between the elements: %.40q", text)
			}
		}
		return nil
	})
}

// root reads up to the first element and returns it; end reads from the end of that element to the end of the text.
func (d *document) root() (e xml.StartElement, err error) {
	for {
		token, err := d.next()
		if err != nil {
			return e, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			return t, nil
		case xml.CharData:
			if text := bytes.TrimSpace(t); len(text) > 0 {
				return e, d.of(t).Errorf("not XML: it begins with %.40q", text)
			}
		}
	}
}

func (d *document) end() error {
	for {
		d.text.left = d.text.most
		token, err := d.dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return d.broken(err)
		}
		text, isText := token.(xml.CharData)
		_, isElement := token.(xml.StartElement)
		if isElement || isText && len(bytes.TrimSpace(text)) > 0 {
			return d.here().Errorf("there is text after the end of the document")
		}
	}
}

// next returns the next token, which is valid until the next call.
func (d *document) next() (xml.Token, error) {
	d.began, _ = d.dec.InputPos()
	token, err := d.dec.Token()
	if err != nil {
		return nil, d.broken(err)
	}
	if e, ok := token.(xml.StartElement); ok {
		if name := twice(e.Attr); name != "" {
			return nil, d.here().Errorf("not XML: attribute %q is given twice", name)
		}
	}
	if directive, ok := token.(xml.Directive); ok && bytes.ContainsAny(directive, "[<") {
		return nil, d.here().Errorf("the document type declares entities or elements, which are not supported; " +
			"remove it")
	}
	return token, nil
}

// twice returns the name of a repeated attribute, or "" if no attribute is repeated. The decoder accepts repeated
// attributes.
func twice(all []xml.Attr) string {
	if len(all) < 2 {
		return ""
	}
	seen := make(map[xml.Name]bool, len(all))
	for _, a := range all {
		if seen[a.Name] {
			return a.Name.Local
		}
		seen[a.Name] = true
	}
	return ""
}

// here returns the current place.
func (d *document) here() workflow.Place {
	line, _ := d.dec.InputPos()
	return workflow.Place{File: d.name, Line: line}
}

// of returns the place at which the last text begins, without its leading blanks.
func (d *document) of(text xml.CharData) workflow.Place {
	blanks := text[:len(text)-len(bytes.TrimLeft(text, " \t\r\n"))]
	return workflow.Place{File: d.name, Line: d.began + bytes.Count(blanks, []byte{'\n'})}
}

// broken returns the error to report for a text that is not XML, is too long, or cannot be read.
func (d *document) broken(err error) error {
	line, column := d.dec.InputPos()
	place := fmt.Sprintf("%s:%d:%d", d.name, line, column)
	syntax, isSyntax := errors.AsType[*xml.SyntaxError](err)
	_, isTooLong := errors.AsType[*input.TooLongError](d.text.err)
	switch {
	case errors.Is(d.text.err, errLong):
		return corral.ErrorAt(corral.Invalid, place, "%w", d.text.err)
	case isTooLong:
		return corral.ErrorAt(corral.Invalid, d.name, "the workflow is %w", d.text.err)
	case d.text.err != nil && !errors.Is(d.text.err, io.EOF):
		return corral.ErrorAt(corral.Invalid, d.name, "reading: %w", d.text.err)
	case d.text.read == 0:
		return corral.ErrorAt(corral.Invalid, d.name, "the file is empty")
	case d.text.err != nil: // inside an element the decoder reports a syntax error, outside the end
		return corral.ErrorAt(corral.Invalid, place, "the file ends before the end of the document")
	case isSyntax:
		return corral.ErrorAt(corral.Invalid, place, "not XML: %s", syntax.Msg)
	}
	return corral.ErrorAt(corral.Invalid, place, "not XML: %s", strings.TrimPrefix(err.Error(), "xml: "))
}

var errLong = errors.New("an element is")

// A source passes a text on byte by byte, so that the decoder's position is exact at each token, and limits the number
// of bytes read: the decoder itself would store texts, attributes and comments of any length.
type source struct {
	r    *bufio.Reader
	most int64
	left int64 // bytes that may be read until the limit is reset
	read int64
	err  error // the error that ended the reading
}

// ReadByte returns the next byte. Because a source has this method, the decoder reads no further than necessary.
func (s *source) ReadByte() (byte, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.left == 0 {
		s.err = fmt.Errorf("%w %w", errLong, &input.TooLongError{Limit: s.most})
		return 0, s.err
	}
	c, err := s.r.ReadByte()
	if err != nil {
		s.err = err
		return 0, err
	}
	s.left--
	s.read++
	return c, nil
}

// Read reads one byte. It is needed when the decoder wraps a reader for an encoding.
func (s *source) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c, err := s.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = c
	return 1, nil
}
