package v1

// A cursor identifies the row after which the next page starts, by the row's score and member. The member may have
// moved or left since. Pages neither repeat nor skip members that do not move between the requests.

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/reading"
)

type cursor struct {
	board  string
	window periods.Window
	pivot  ranking.Pivot
	dense  int64 // the row's dense rank; 0 if unknown
}

const cursorVersion = 1

// String encodes the cursor as an opaque text: version, score, dense rank, length of the window's name, the name,
// the member, and a checksum. The checksum also covers board and period, so that a cursor of another board is
// rejected.
func (c *cursor) String() string {
	b := []byte{cursorVersion}
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(c.pivot.Score))
	b = binary.AppendUvarint(b, uint64(c.dense))
	b = binary.AppendUvarint(b, uint64(len(c.window.Name)))
	b = append(append(b, c.window.Name...), c.pivot.Member...)
	b = binary.BigEndian.AppendUint32(b, checksum(b, c.board, string(c.window.Period)))
	return base64.RawURLEncoding.EncodeToString(b)
}

func checksum(b []byte, board, period string) uint32 {
	d := xxhash.New()
	_, _ = d.Write(b)
	_, _ = d.WriteString("\x00" + board + "\x00" + period)
	return uint32(d.Sum64())
}

// readCursor parses a page's next_cursor. The cursor keeps its window, even if current or previous names
// another one by now.
func readCursor(text string, t reading.Target) (*cursor, error) {
	c, ok := parseCursor(text, t)
	if !ok {
		return nil, wrong("cursor", "cursor must be the next_cursor of a page of this board and period. Omit it for the first page")
	}
	if c.window.Name != t.Window.Name && (t.Named != reading.Current && t.Named != reading.Previous) {
		return nil, wrong("cursor", "cursor belongs to the window %s", c.window.Name)
	}
	return c, nil
}

func parseCursor(text string, t reading.Target) (*cursor, bool) {
	if strings.ContainsAny(text, "\r\n") { // the decoder ignores line breaks
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 1+8+1+1+4 || b[0] != cursorVersion {
		return nil, false
	}
	b, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if checksum(b, t.Board, string(t.Period.Rule.Name())) != sum {
		return nil, false
	}
	c := &cursor{board: t.Board}
	c.pivot.Score = math.Float64frombits(binary.BigEndian.Uint64(b[1:9]))
	b = b[9:]
	dense, n := binary.Uvarint(b)
	if n <= 0 || dense > math.MaxInt64 {
		return nil, false
	}
	c.dense, b = int64(dense), b[n:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return nil, false
	}
	b = b[n:]
	rule := t.Period.Rule
	if c.window, err = rule.Named(string(b[:length])); err != nil {
		return nil, false
	}
	c.pivot.Member = string(b[length:])
	return c, !math.IsNaN(c.pivot.Score) && len(c.pivot.Member) > 0 && len(c.pivot.Member) <= longestID
}

// same reports whether a row has the same points as the cursor's row.
func (c *cursor) same(v *reading.View, st *ranking.Standing) bool {
	return v.SamePoints(c.pivot.Score, st)
}
