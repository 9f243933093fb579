package input

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Table reads CSV of at most limit bytes whose first line contains the given columns, and calls each for every further
// record; a record is valid only until each returns. It stops at the first error, including an error of each, and
// returns its line number; line 0 means the whole file.
func Table(r io.Reader, limit int64, columns []string, each func(record []string) error) (line int, err error) {
	in := csv.NewReader(withoutMark(Limit(context.Background(), r, limit)))
	in.FieldsPerRecord = len(columns)
	in.ReuseRecord = true
	for first := true; ; first = false {
		record, err := in.Read()
		var parse *csv.ParseError
		switch {
		case err == io.EOF && first:
			return 0, errors.New("the file is empty")
		case err == io.EOF:
			return 0, nil
		case errors.As(err, &parse) && errors.Is(err, csv.ErrFieldCount):
			return parse.Line, fmt.Errorf("the number of fields is not %d", len(columns))
		case errors.As(err, &parse):
			return parse.Line, parse.Err
		case err != nil:
			return 0, err
		case !first:
			err = each(record)
		case !slices.Equal(record, columns):
			err = fmt.Errorf("the first line is not %s", strings.Join(columns, ","))
		}
		if err != nil {
			line, _ = in.FieldPos(0)
			return line, err
		}
	}
}

// ByteOrderMark is the mark that some programs write before a text in UTF-8. It has no meaning.
const ByteOrderMark = "\uFEFF"

// withoutMark removes a leading byte order mark from a text.
func withoutMark(r io.Reader) io.Reader {
	text := bufio.NewReader(r)
	if mark, err := text.Peek(len(ByteOrderMark)); err == nil && string(mark) == ByteOrderMark {
		_, _ = text.Discard(len(ByteOrderMark))
	}
	return text
}
