package terminal

// Colours of states, by which the eye finds the row that needs somebody.

import (
	"io"
	"regexp"
	"strings"
)

// Colour is how a terminal shows a state.
type Colour string

// By what a state asks for.
const (
	Green  Colour = "\x1b[32m" // nothing
	Yellow Colour = "\x1b[33m" // to know of it
	Red    Colour = "\x1b[31m" // to do something
)

const plain = "\x1b[0m"

// inItsPlace is a word that is a cell of a table, or is counted: "2 halted,".
var inItsPlace = regexp.MustCompile(`(  |[,:] \d+ )([a-z]+(?: [a-z]+)?)(  |[,;]|$)`)

// WriteColoured is Write with the states in colours. A nil map is without. Colours are
// added to what is harmless already: nothing that others wrote becomes one.
func WriteColoured(w io.Writer, text string, states map[string]Colour) error {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Coloured(Harmless(line), states)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n"))
	return err
}

// Coloured is a line that is harmless already, with the states in colours.
func Coloured(line string, states map[string]Colour) string {
	if len(states) == 0 {
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
		if colour, ok := states[line[from:to]]; ok {
			b.WriteString(string(colour) + line[from:to] + plain)
		} else {
			b.WriteString(line[from:to])
		}
		line = line[to:]
	}
}
