// Package bans manages banned members: it keeps a record per ban in a compacted Kafka topic, and applies the bans
// to the standings. It is below the commands, on the same level as ingest: it uses kafkaconn to read Kafka, and
// defines what it needs of the standings as an interface.
//
// The topic is authoritative. The bans in the standings follow from the topic and the time alone, so a Redis that
// was wiped, restored or refilled gets the same members hidden again:
//
//	bans topic ──▶ Follower: State, by key ──▶ Keeper: who is banned now ──▶ Standings
//	(compacted)     (read to its end first)     (compared, then changed)      (Ban, Unban)
//
// Applying the bans is idempotent: every replica does it, and no leader is needed.
package bans

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// Key identifies a ban: a member, and one board or, with Board "", all boards. A member may have both kinds of
// ban; each ends separately.
type Key struct{ Board, Member string }

// Limits of a record, in bytes.
const (
	MaxMember = 256 // the same limit as for events
	MaxReason = 500
	MaxBy     = 200
)

var boardPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Text returns the key as it is in the topic: <board>:<member>. Board names contain no colon.
func (k Key) Text() string { return k.Board + ":" + k.Member }

// ParseKey parses the result of Text.
func ParseKey(text string) (Key, error) {
	board, member, ok := strings.Cut(text, ":")
	if !ok {
		return Key{}, errors.New("the key isn't <board>:<member>")
	}
	k := Key{board, member}
	return k, k.Check()
}

// Check returns an error if the key is invalid.
func (k Key) Check() error {
	switch {
	case k.Board != "" && !boardPattern.MatchString(k.Board):
		return fmt.Errorf("%.70q is not a board name", k.Board)
	case k.Member == "" || len(k.Member) > MaxMember || !utf8.ValidString(k.Member):
		return fmt.Errorf("a member's id has 1 to %d bytes of UTF-8", MaxMember)
	}
	return nil
}

// Record is a ban as it is in the topic. Times have ms precision.
type Record struct {
	Key

	Reason string
	By     string    // who published the ban
	At     time.Time // when the ban was published, by the publisher's clock
	Until  time.Time // when the ban ends; zero: when it is removed
	Erased bool      // permanent; the member's standings are deleted
}

// wire is a record's value. Unknown fields are ignored.
type wire struct {
	Member *string  `json:"member"`
	Board  *string  `json:"board"`
	Reason string   `json:"reason"`
	By     string   `json:"by"`
	At     *instant `json:"at"`
	Until  *instant `json:"until,omitempty"`
	Erased bool     `json:"erased,omitempty"`
}

// instant is an RFC 3339 time in UTC with ms.
type instant time.Time

const instantForm = "2006-01-02T15:04:05.000Z07:00"

// MarshalJSON writes the time.
func (i instant) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Time(i).UTC().Format(instantForm))
}

// UnmarshalJSON reads any RFC 3339 time, and truncates it to ms.
func (i *instant) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return err
	}
	*i = instant(milliseconds(t))
	return nil
}

func milliseconds(t time.Time) time.Time { return t.Truncate(time.Millisecond).UTC() }

// InForce reports whether the ban is in force at a time.
func (r *Record) InForce(now time.Time) bool {
	return r.Erased || r.Until.IsZero() || now.Before(r.Until)
}

// Check returns an error if the record cannot be published.
func (r *Record) Check() error {
	switch err := r.Key.Check(); {
	case err != nil:
		return err
	case strings.TrimSpace(r.Reason) == "":
		return errors.New("a reason is missing")
	case len(r.Reason) > MaxReason || !utf8.ValidString(r.Reason):
		return fmt.Errorf("a reason has at most %d bytes of UTF-8", MaxReason)
	case len(r.By) > MaxBy || !utf8.ValidString(r.By):
		return fmt.Errorf("who banned them has at most %d bytes of UTF-8", MaxBy)
	case !written(r.At):
		return errors.New("the time of the ban is missing, or isn't of the years 1970 to 9999")
	case !r.Until.IsZero() && !written(r.Until):
		return errors.New("the end isn't of the years 1970 to 9999")
	case r.Erased && !r.Until.IsZero():
		return errors.New("who is erased is so for good: there is no end")
	case r.Erased && r.Board != "":
		return errors.New("a member is erased on all boards")
	}
	return nil
}

// written reports whether a time is after 1970 and can be written by RFC 3339.
func written(t time.Time) bool { return t.Unix() >= 0 && t.UTC().Year() <= 9999 }

// Encode returns the record's key and value.
func (r *Record) Encode() (key, value []byte, err error) {
	if err := r.Check(); err != nil {
		return nil, nil, err
	}
	at := instant(milliseconds(r.At))
	w := wire{Member: &r.Member, Board: &r.Board, Reason: r.Reason, By: r.By, At: &at, Erased: r.Erased}
	if !r.Until.IsZero() {
		until := instant(milliseconds(r.Until))
		w.Until = &until
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(w); err != nil {
		return nil, nil, err
	}
	return []byte(r.Text()), bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Decode parses a record of the topic. For a tombstone, which has a null value, r is nil. Errors describe the
// fault, but contain nothing of the record except a board's name.
func Decode(key, value []byte) (k Key, r *Record, err error) {
	if key == nil {
		return Key{}, nil, errors.New("it has no key")
	}
	if k, err = ParseKey(string(key)); err != nil {
		return Key{}, nil, err
	}
	if value == nil {
		return k, nil, nil
	}
	var w wire
	if err := json.Unmarshal(value, &w); err != nil {
		return Key{}, nil, fmt.Errorf("the value isn't a ban: %w", err)
	}
	switch {
	case w.Member == nil || w.Board == nil || w.At == nil:
		return Key{}, nil, errors.New("the value lacks member, board or at")
	case *w.Member != k.Member || *w.Board != k.Board:
		return Key{}, nil, errors.New("the value's member and board aren't the key's")
	}
	r = &Record{Key: k, Reason: w.Reason, By: w.By, At: time.Time(*w.At), Erased: w.Erased}
	if w.Until != nil {
		r.Until = time.Time(*w.Until)
	}
	if err := r.Check(); err != nil {
		return Key{}, nil, err
	}
	return k, r, nil
}
