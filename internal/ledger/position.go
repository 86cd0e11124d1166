// Package ledger has the types that the reading side (Kafka) and the writing side (Redis) exchange: a
// partition's position, what to add, and the outcome. It is pure.
//
// A position denotes a set of counted events, and a piece adds exactly the events between the position that
// it expects and the one that it writes. Exactly-once counting relies on comparing positions as text, in
// the call that writes the scores.
package ledger

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Position denotes which events of a partition are counted. Its text has two forms:
//
//	480                   every event before offset 480
//	120..480@8f3c…#5d1e…  every event before 120, and of those in [120, 480) the
//	                      ones whose member's hash is below 8f3c…, by the rules
//	                      with the fingerprint 5d1e…
//
// A sweep without a fingerprint was started by a version of this program that wrote none.
type Position struct {
	From  int64       // every event before this offset is counted
	To    int64       // end of the sweep; equal to From without a sweep
	Hash  uint64      // in [From, To), members with a hash below this are counted
	Rules Fingerprint // rules of the sweep; 0 without a sweep, or if they are unknown
}

// At returns the position at which every event before offset is counted.
func At(offset int64) Position { return Position{From: offset, To: offset} }

// Sweeping reports whether a batch has been applied in part.
func (p Position) Sweeping() bool { return p.To != p.From }

// Append appends the position's text. Only this form is stored and compared.
func (p Position) Append(b []byte) []byte {
	b = strconv.AppendInt(b, p.From, 10)
	if !p.Sweeping() {
		return b
	}
	b = append(b, ".."...)
	b = strconv.AppendInt(b, p.To, 10)
	b = append(b, '@')
	b = appendHex(b, p.Hash)
	if p.Rules != 0 {
		b = append(b, '#')
		b = p.Rules.Append(b)
	}
	return b
}

func (p Position) String() string { return string(p.Append(nil)) }

// TornMark is the prefix of a position in the ledger while a piece is being written. It remains if the
// script dies midway.
const TornMark = "torn:"

// Torn returns the text that the ledger has between a piece's first and last write.
func Torn(expected Position) string { return TornMark + expected.String() }

// Counted parses the position that a ledger denotes, torn or not. A torn one denotes the position before
// the piece that was being written.
func Counted(text string) (Position, error) { return Parse(strings.TrimPrefix(text, TornMark)) }

// Parse parses a position. It accepts only the text that Append writes, so that equal positions have equal
// texts.
func Parse(text string) (Position, error) {
	p, err := parse(text)
	if err != nil {
		return Position{}, fmt.Errorf("position %q: %w", text, err)
	}
	if p.String() != text {
		return Position{}, fmt.Errorf("position %q: not in canonical form, which is %q", text, p)
	}
	return p, nil
}

func parse(text string) (Position, error) {
	if strings.HasPrefix(text, TornMark) {
		return Position{}, ErrTorn
	}
	from, rest, sweep := strings.Cut(text, "..")
	f, err := offset(from)
	if err != nil {
		return Position{}, err
	}
	if !sweep {
		return At(f), nil
	}
	to, hash, ok := strings.Cut(rest, "@")
	if !ok {
		return Position{}, errors.New("a sweep has no hash")
	}
	t, err := offset(to)
	if err != nil {
		return Position{}, err
	}
	hash, text, by := strings.Cut(hash, "#")
	h, err := strconv.ParseUint(hash, 16, 64)
	if err != nil {
		return Position{}, fmt.Errorf("hash: %w", err)
	}
	rules := Fingerprint(0)
	if by {
		if rules, err = ParseFingerprint(text); err != nil {
			return Position{}, err
		}
	}
	if t <= f || h == 0 {
		return Position{}, errors.New("an empty sweep")
	}
	return Position{From: f, To: t, Hash: h, Rules: rules}, nil
}

func offset(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("offset: %w", err)
	}
	if n < 0 {
		return 0, fmt.Errorf("offset %d is negative", n)
	}
	return n, nil
}

// ErrTorn is the error of Parse for a ledger that a script left midway. Scores may be written in part, and
// only a rebuild repairs that.
var ErrTorn = errors.New("a piece was written in part")
