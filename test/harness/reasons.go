package harness

import (
	"encoding/json"
	"strings"
)

// Reasons returns the reasons why a process ended, one per line: after "consumer: ", as all commands write
// them, or as the error of a log line, as run does.
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
