package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// longestRow is the maximum length of a row in an export, in bytes.
const longestRow = 64 << 10

// errStopped reports that the caller has left its loop.
var errStopped = errors.New("no more is wanted")

// Export returns all rows of a window by rank, as one streamed response. If the response is cut off, the last
// error is io.ErrUnexpectedEOF. Each part of the rows is as of its own read. An error ends the sequence.
func (c *Client) Export(ctx context.Context, r Ref) iter.Seq2[Standing, error] {
	return func(yield func(Standing, error) bool) {
		path, err := r.below("export")
		if err == nil {
			err = c.send(ctx, &request{path: path}, func(body io.Reader) error { return rows(body, yield) })
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(Standing{}, err)
		}
	}
}

// rows reads the lines of an export. The last line marks the end; without it the export was cut off.
func rows(body io.Reader, yield func(Standing, error) bool) error {
	lines := bufio.NewReaderSize(body, longestRow)
	for n := int64(0); ; n++ {
		text, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("after %d rows: %w", n, err)
		}
		var line struct {
			Standing

			End  bool  `json:"end"`
			Rows int64 `json:"rows"`
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return fmt.Errorf("row %d can't be read: %w", n+1, err)
		}
		switch {
		case line.End && line.Rows != n:
			return fmt.Errorf("%d of %d rows have come: %w", n, line.Rows, io.ErrUnexpectedEOF)
		case line.End:
			return nil
		case !yield(line.Standing, nil):
			return errStopped
		}
	}
}
