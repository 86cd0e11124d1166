package terminal

// A terminal that is drawn in place.

import (
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/term"
)

// Bold is the style of headings.
const Bold = "\x1b[1m"

// Styled is a text in a style: Bold, or a Colour's; empty for none.
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

// Unstyled is a text without its styles.
func Unstyled(text string) string { return styles.ReplaceAllString(text, "") }

// Escape sequences that every terminal since the VT100 knows, and xterm's for the alternate
// screen. Lines aren't wrapped by the terminal: how wide some characters are is seen otherwise
// by one than by another, and a line that is taken for too wide would push all others down.
const (
	screenEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J"
	screenLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H"
	lineErase   = "\x1b[K"
	restErase   = "\x1b[J"
)

// Screen is a terminal that is drawn in place. What was on it before comes back when it is left.
type Screen struct{ file *os.File }

// EnterScreen begins to draw on w, which is a terminal (Width).
func EnterScreen(w io.Writer) (*Screen, error) {
	s := &Screen{w.(*os.File)}
	_, err := s.file.WriteString(screenEnter)
	return s, err
}

// Draw draws lines, which are no more than the height and no wider than the width. Both are what
// they are now: a terminal may be resized at any time.
func (s *Screen) Draw(lines func(width, height int) []string) error {
	width, height, err := term.GetSize(int(s.file.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	// What was there is erased before a line, and not behind it: behind one that is as wide as the
	// terminal the cursor is still on the last character.
	all := lines(width, height)
	text := screenHome + lineErase + strings.Join(all, "\n"+lineErase)
	if len(all) < height {
		text += "\n" + restErase
	}
	_, err = s.file.WriteString(text)
	return err
}

// Leave makes the terminal as it was before.
func (s *Screen) Leave() { _, _ = s.file.WriteString(screenLeave) }
