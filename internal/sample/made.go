package sample

import (
	"bytes"
	"regexp"
	"strings"
)

var (
	madeUser = regexp.MustCompile(`^([` + strings.ToUpper(string(consonants)) + `][aeiou]([` + string(consonants) + `][aeiou]){2}|player-[0-9]{6,})$`)
	madeHead = regexp.MustCompile(`^\{"event_id":"[` + crockford + `]{10,26}("|$)`)
)

// Made reports whether a record looks like one of a Generator's: its key is a name as they
// are made up, and its value begins as events do, or is none of JSON's objects, as some bad
// ones are.
func Made(key, value []byte) bool {
	return madeUser.Match(key) && (madeHead.Match(value) || !bytes.HasPrefix(value, []byte("{")))
}
