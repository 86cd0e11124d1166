package ledger

import (
	"errors"
	"fmt"
	"strconv"
)

// Fingerprint tells rules apart: what decides what a record results in, as one text. 0: it
// isn't known which.
type Fingerprint uint64

// Append writes it as 16 lower-case hex digits.
func (f Fingerprint) Append(b []byte) []byte { return appendHex(b, uint64(f)) }

// appendHex writes 16 lower-case hex digits.
func appendHex(b []byte, n uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[n>>shift&15])
	}
	return b
}

func (f Fingerprint) String() string { return string(f.Append(nil)) }

// ParseFingerprint reads what String writes, and nothing else. 0 is none.
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

// Note is kept beside the ledger, in the call of a piece: by which rules the partition is
// counted from then on, and their text.
type Note struct {
	Rules Fingerprint
	Text  string
}
