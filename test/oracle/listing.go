package oracle

import (
	"encoding/json"
	"fmt"
)

// Listing is an entry of the listing of windows, with the keys of its JSON in order. Times are Unix ms.
type Listing struct {
	End     int64  `json:"end"`
	Expires int64  `json:"expires"`
	Final   int64  `json:"final,omitempty"` // revision of a final window
	Rule    string `json:"rule,omitempty"`  // of its board, unless it is the default rule
	Sets    string `json:"sets,omitempty"`  // the sets that it uses, unless it is only the first of two
	Start   int64  `json:"start"`
}

// Text returns the entry as Redis stores it.
func (l Listing) Text() string {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err) // only texts and integers
	}
	return string(text)
}

// ReadListing parses an entry.
func ReadListing(text string) (l Listing, err error) {
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return l, fmt.Errorf("a window is listed as %q: %w", text, err)
	}
	return l, nil
}
