package cli

import (
	"encoding/json"
	"time"

	"github.com/standings/standings/internal/units"
)

// OptionalText is null in JSON if it is empty.
type OptionalText string

// MarshalJSON implements json.Marshaler.
func (t OptionalText) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(t))
}

// OptionalTime is a time in Unix ms. In JSON it is RFC 3339 with ms, in UTC, and null if it is negative.
type OptionalTime int64

// MarshalJSON implements json.Marshaler.
func (t OptionalTime) MarshalJSON() ([]byte, error) {
	if t < 0 {
		return []byte("null"), nil
	}
	return json.Marshal(units.TimeMS(int64(t)))
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *OptionalTime) UnmarshalJSON(text []byte) error {
	var at *time.Time
	err := json.Unmarshal(text, &at)
	if *t = -1; at != nil {
		*t = OptionalTime(at.UnixMilli())
	}
	return err
}
