package harness

import (
	"encoding/json"
	"strings"
)

// Reasons are what a process wrote of why it ends, a line each: after "consumer: ", as all
// commands do, or as the error of a log's line, as run does.
func Reasons(stderr string) []string {
	var all []string
	for line := range strings.Lines(stderr) {
		if text, ok := strings.CutPrefix(line, "consumer: "); ok {
			all = append(all, strings.TrimSpace(text))
			continue
		}
		var logged struct{ Msg, Error string }
		if json.Unmarshal([]byte(line), &logged) == nil && (logged.Msg == "ended by an error" || logged.Msg == "the configuration is wrong") {
			all = append(all, logged.Error)
		}
	}
	return all
}
