package oracle

import (
	"encoding/json"
	"fmt"
)

// Listing is an entry of the listing of windows, with the keys of its JSON in order. Times are Unix ms.
type Listing struct {
	End     int64  `json:"end"`
	Expires int64  `json:"expires"`
	Final   int64  `json:"final,omitempty"` // the revision of a final window
	Rule    string `json:"rule,omitempty"`  // of its board, if that isn't the default rule
	Sets    string `json:"sets,omitempty"`  // which of its two sets it has, if that isn't the first alone
	Start   int64  `json:"start"`
}

// Text is the entry as Redis has it.
func (l Listing) Text() string {
	text, err := json.Marshal(l)
	if err != nil {
		panic(err) // texts and integers only
	}
	return string(text)
}

// ReadListing reads an entry.
func ReadListing(text string) (l Listing, err error) {
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return l, fmt.Errorf("a window is listed as %q: %w", text, err)
	}
	return l, nil
}
