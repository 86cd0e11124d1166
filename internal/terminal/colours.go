package terminal

// Colours of states, which make rows that need attention easy to find.

import (
	"io"
	"regexp"
	"strings"
)

// Colour is how a terminal shows a state.
type Colour string

// The colours, by what a state requires of the operator.
const (
	Green  Colour = "\x1b[32m" // nothing
	Yellow Colour = "\x1b[33m" // attention
	Red    Colour = "\x1b[31m" // an action
)

const plain = "\x1b[0m"

// inItsPlace matches a word that is a table cell, or is counted, as in "2 halted,".
var inItsPlace = regexp.MustCompile(`(  |[,:] \d+ )([a-z]+(?: [a-z]+)?)(  |[,;]|$)`)

// WriteColoured is Write with the states in colours, if coloured. It adds colours to text that is already
// harmless, so text from Kafka or Redis cannot contain any.
func WriteColoured(w io.Writer, text string, states map[string]Colour, coloured bool) error {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Coloured(Harmless(line), states, coloured)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n"))
	return err
}

// Coloured returns a line with the states in colours, if coloured. The line must already be harmless.
func Coloured(line string, states map[string]Colour, coloured bool) string {
	if !coloured {
		return line
	}
	var b strings.Builder
	for {
		found := inItsPlace.FindStringSubmatchIndex(line)
		if found == nil {
			b.WriteString(line)
			return b.String()
		}
		from, to := found[4], found[5]
		b.WriteString(line[:from])
		b.WriteString(Styled(string(states[line[from:to]]), line[from:to]))
		line = line[to:]
	}
}
