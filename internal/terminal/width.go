// Package terminal has the output for people: text that cannot control the terminal, aligned tables, and
// progress.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Width reports whether w is a terminal, and returns its width.
func Width(w io.Writer) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return width, err == nil && width > 0
}
