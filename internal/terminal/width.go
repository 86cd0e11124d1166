// Package terminal is what people see: text that shows as it stands, aligned tables,
// and how far something has come.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Width reports whether a person reads w as it is written, and how wide it is.
func Width(w io.Writer) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return width, err == nil && width > 0
}
