package ledger

import (
	"errors"
	"fmt"
	"strconv"
)

// Fingerprint identifies rules: all settings that decide how a record counts, as one text. 0 means unknown.
type Fingerprint uint64

// Append appends the fingerprint as 16 lower-case hex digits.
func (f Fingerprint) Append(b []byte) []byte { return appendHex(b, uint64(f)) }

// appendHex appends 16 lower-case hex digits.
func appendHex(b []byte, n uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[n>>shift&15])
	}
	return b
}

func (f Fingerprint) String() string { return string(f.Append(nil)) }

// ParseFingerprint parses what String writes, and nothing else. 0 is not valid.
func ParseFingerprint(text string) (Fingerprint, error) {
	n, err := strconv.ParseUint(text, 16, 64)
	switch f := Fingerprint(n); {
	case err != nil:
		return 0, fmt.Errorf("fingerprint of rules: %w", err)
	case f == 0:
		return 0, errors.New("a fingerprint of rules is 0")
	case f.String() != text:
		return 0, fmt.Errorf("fingerprint of rules %q: want 16 lower-case hex digits", text)
	default:
		return f, nil
	}
}

// Note is the rules by which a partition is counted from a piece on. The piece's call stores them.
type Note struct {
	Rules Fingerprint
	Text  string
}
