package store

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/internal/codec"
)

// Row is a member's standing in a copy of a window. The row of an erased member has only its place and its rank.
type Row struct {
	// Place is the row's position among all rows, from 1. Every place occurs once, also among equal scores.
	Place int64
	// Rank is the position among the rows that were shown when the copy was taken; 0 if the member was banned
	// then.
	Rank   int64
	Member string // empty: erased
	// Tuple has the values of the board's fields; with the default rule, the points as its first value.
	Tuple     codec.Tuple
	Score     float64 // the score in Redis; finite
	ReachedAt int64   // Unix ms
}

// maxMember is the maximum length of a member's id, in bytes of UTF-8.
const maxMember = 256

// Erased reports whether the member was erased.
func (r *Row) Erased() bool { return r.Member == "" }

func (r *Row) check() error {
	switch {
	case r.Rank < 0 || r.Rank > r.Place:
		return fmt.Errorf("%w: the rank of place %d: %d", ErrInvalid, r.Place, r.Rank)
	case r.Member == "" || len(r.Member) > maxMember || !utf8.ValidString(r.Member):
		return fmt.Errorf("%w: the member of place %d: %q", ErrInvalid, r.Place, r.Member)
	case math.IsNaN(r.Score) || math.IsInf(r.Score, 0):
		return fmt.Errorf("%w: the score of place %d: %v", ErrInvalid, r.Place, r.Score)
	case r.ReachedAt < 0 || r.ReachedAt > maxTime:
		return fmt.Errorf("%w: the time of place %d: %d", ErrInvalid, r.Place, r.ReachedAt)
	}
	return nil
}

// maxTime is the end of the year 9999, in Unix ms. Every database supports times up to it.
const maxTime = 253402300799999

// rank returns the value of the column rank: null for a hidden member.
func (r *Row) rank() any {
	if r.Rank == 0 {
		return nil
	}
	return r.Rank
}

// columns returns the row's points, or its fields as JSON in the board's order.
func (r *Row) columns(fields []string) (points, text any) {
	if fields == nil {
		return r.Tuple[0], nil
	}
	b := make([]byte, 0, 64)
	for i, name := range fields {
		b = append(b, `,"`...)
		b = append(b, name...) // letters, digits and _ need no escape
		b = append(b, `": `...)
		b = strconv.AppendInt(b, r.Tuple[i], 10)
	}
	b[0] = '{'
	return nil, string(append(b, '}'))
}

var errTuple = errors.New("a row's fields in the archive aren't of this program's")

// parseTuple parses the text of columns. It ignores the fields' names: the values are in the fields' order, and
// names contain neither colons nor commas.
func parseTuple(text string) (t codec.Tuple, err error) {
	inner, ok := strings.CutPrefix(text, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !ok || !closed {
		return t, errTuple
	}
	i := 0
	for part := range strings.SplitSeq(inner, ",") {
		_, value, ok := strings.Cut(part, ":")
		if !ok || i == len(t) {
			return t, errTuple
		}
		if t[i], err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil {
			return t, errTuple
		}
		i++
	}
	return t, nil
}

// Checksum covers rows in any order. It is the sum, modulo 2^64, of the 64-bit xxHash (seed 0) of each row's text:
//
//	rank SP values SP reached_at SP score SP member             of a row that was shown
//	hidden SP place SP values SP reached_at SP score SP member  of a banned member's row
//	erased SP place                                             of an erased member's row
//
// values are the points, or the fields' values in the board's order, separated by commas. reached_at is in Unix
// ms. score is the bits of the double as 16 lower-case hex digits (-0 as 0). member is the id itself, without the
// escapes of its column. So the checksum can be updated row by row, and computed in any language.
//
// It detects rows that were lost, repeated, changed or exchanged by accident: two different sets of rows have the
// same sum with a probability of 2^-64. It does not detect deliberate changes, since an attacker can compute it,
// too.
type Checksum uint64 //nolint:recvcheck // Add changes it, String is for any value

// Add adds a row of a board with the given number of fields; 0 for the default rule.
func (c *Checksum) Add(r *Row, fields int) { *c += r.hash(fields) }

// hash returns the row's part of a checksum.
func (r *Row) hash(fields int) Checksum {
	var space [maxMember + 192]byte
	b := space[:0]
	switch {
	case r.Erased():
		return Checksum(xxhash.Sum64(strconv.AppendInt(append(b, "erased "...), r.Place, 10)))
	case r.Rank == 0:
		b = strconv.AppendInt(append(b, "hidden "...), r.Place, 10)
	default:
		b = strconv.AppendInt(b, r.Rank, 10)
	}
	b = append(b, ' ')
	for i := range max(fields, 1) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, r.Tuple[i], 10)
	}
	b = append(b, ' ')
	b = strconv.AppendInt(b, r.ReachedAt, 10)
	b = append(b, ' ')
	var bits [8]byte
	score := r.Score
	if score == 0 {
		score = 0 // not -0, which SQLite does not keep
	}
	binary.BigEndian.PutUint64(bits[:], math.Float64bits(score))
	b = hex.AppendEncode(b, bits[:])
	b = append(b, ' ')
	b = append(b, r.Member...)
	return Checksum(xxhash.Sum64(b))
}

func (c Checksum) String() string { return fmt.Sprintf("%016x", uint64(c)) }

func parseChecksum(text string) (Checksum, error) {
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil || len(text) != 16 {
		return 0, fmt.Errorf("%q is no checksum", text)
	}
	return Checksum(n), nil
}

// Text in PostgreSQL cannot contain U+0000, and many tools show text in SQLite only up to it. U+0001 starts an
// escape. Escaped ids sort like the ids, byte by byte.
var (
	memberEscapes   = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")
	memberUnescapes = strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01")
)

func storedMember(id string) string { return memberEscapes.Replace(id) }

func memberOf(stored string) string {
	if !strings.Contains(stored, "\x01") {
		return stored
	}
	return memberUnescapes.Replace(stored)
}
