package terminal

// A screen that is redrawn in place.

import (
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/term"
)

// Bold is the style of headings.
const Bold = "\x1b[1m"

// Styled returns a text in a style: Bold, or a Colour's; empty for none.
func Styled(style, text string) string {
	if style == "" {
		return text
	}
	return style + text + plain
}

// In returns the text in the colour, if coloured.
func (c Colour) In(text string, coloured bool) string {
	if !coloured {
		return text
	}
	return Styled(string(c), text)
}

var styles = regexp.MustCompile(`\x1b\[[0-9]*m`)

// Unstyled returns a text without its styles.
func Unstyled(text string) string { return styles.ReplaceAllString(text, "") }

// Escape sequences that every terminal since the VT100 knows, and xterm's for the alternate screen. They turn
// off the terminal's line wrapping: terminals disagree about the width of some characters, and a line that a
// terminal takes for too wide would push all others down.
const (
	screenEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J"
	screenLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H"
	lineErase   = "\x1b[K"
	restErase   = "\x1b[J"
)

// Screen is a terminal that is redrawn in place. Leave restores the previous content.
type Screen struct{ file *os.File }

// EnterScreen starts to draw on w, which must be a terminal (see Width).
func EnterScreen(w io.Writer) (*Screen, error) {
	s := &Screen{w.(*os.File)}
	_, err := s.file.WriteString(screenEnter)
	return s, err
}

// Draw draws the lines, which must fit the current height and width. Both may change at any time.
func (s *Screen) Draw(lines func(width, height int) []string) error {
	width, height, err := term.GetSize(int(s.file.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	// Each line is erased before it is written, not after: after a line as wide as the terminal, the cursor is
	// still on the last character.
	all := lines(width, height)
	text := screenHome + lineErase + strings.Join(all, "\n"+lineErase)
	if len(all) < height {
		text += "\n" + restErase
	}
	_, err = s.file.WriteString(text)
	return err
}

// Leave restores the terminal.
func (s *Screen) Leave() { _, _ = s.file.WriteString(screenLeave) }
