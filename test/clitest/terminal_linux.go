package clitest

// A terminal that commands draw on, and its screen.

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/sys/unix"
)

// Terminal is a pseudoterminal with its screen. It supports only the escape sequences that commands draw with.
type Terminal struct {
	TTY *os.File // commands write to it

	master  *os.File
	mu      sync.Mutex
	written strings.Builder // everything that was written
	rows    []string        // of the alternate screen, without styles
	at      int             // the row that is written next
	begun   bool            // something has been written to that row
	width   int
	changed chan struct{} // closed and replaced when data arrives
}

// OpenTerminal opens a terminal of the given size.
func OpenTerminal(t *testing.T, width, height int) *Terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	x := &Terminal{master: master, changed: make(chan struct{})}
	number := 0
	x.control(t, func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		}
		return err
	})
	if x.TTY, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	x.Resize(t, width, height)
	read := make(chan struct{})
	go func() {
		defer close(read)
		x.read()
	}()
	t.Cleanup(func() {
		_ = x.TTY.Close()
		<-read
		_ = master.Close()
	})
	return x
}

// control calls do with the descriptor of the terminal's master end.
func (x *Terminal) control(t *testing.T, do func(fd int) error) {
	t.Helper()
	conn, err := x.master.SyscallConn()
	if err == nil {
		failed := conn.Control(func(fd uintptr) { err = do(int(fd)) })
		if err == nil {
			err = failed
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Resize changes the terminal's size.
func (x *Terminal) Resize(t *testing.T, width, height int) {
	t.Helper()
	x.mu.Lock()
	x.width, x.rows = width, x.rows[:min(len(x.rows), height)]
	x.mu.Unlock()
	x.control(t, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)})
	})
}

// read reads what is written until the other end is closed.
func (x *Terminal) read() {
	var left string
	buf := make([]byte, 64<<10)
	for {
		n, err := x.master.Read(buf)
		if err != nil {
			return
		}
		x.mu.Lock()
		x.written.Write(buf[:n])
		left = x.shown(left + string(buf[:n]))
		close(x.changed)
		x.changed = make(chan struct{})
		x.mu.Unlock()
	}
}

var sequence = regexp.MustCompile(`^\x1b\[(\??[0-9;]*)([A-Za-z])`)

// shown draws text, and returns an incomplete rest.
func (x *Terminal) shown(text string) (left string) {
	row := func() *string {
		for len(x.rows) <= x.at {
			x.rows = append(x.rows, "")
		}
		return &x.rows[x.at]
	}
	for text != "" {
		if found := sequence.FindStringSubmatch(text); found != nil {
			switch found[1] + found[2] {
			case "H":
				x.at, x.begun = 0, false
			case "2J":
				x.rows = nil
			case "J":
				x.erase(row())
				x.rows = x.rows[:x.at+1]
			case "K":
				x.erase(row())
			}
			text = text[len(found[0]):]
			continue
		}
		switch text[0] {
		case '\x1b':
			return text
		case '\n':
			x.at, x.begun = x.at+1, false
		case '\r':
		default:
			end := strings.IndexAny(text, "\x1b\r\n")
			if end < 0 {
				end = len(strings.TrimRightFunc(text, func(r rune) bool { return r == utf8.RuneError })) // a character may arrive in parts
			}
			if end == 0 {
				return text
			}
			if !x.begun {
				*row() = ""
			}
			*row() += text[:end]
			x.begun, text = true, text[end:]
			continue
		}
		text = text[1:]
	}
	return ""
}

// erase erases a row from the cursor on. After a line as wide as the terminal, the cursor is on its last character.
func (x *Terminal) erase(row *string) {
	if !x.begun {
		*row = ""
	} else if _, last := utf8.DecodeLastRuneInString(*row); uniseg.StringWidth(*row) >= x.width {
		*row = (*row)[:len(*row)-last]
	}
}

// Screen returns the screen's content, one line per row.
func (x *Terminal) Screen() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.TrimSuffix(strings.Join(x.rows, "\n"), "\n")
}

// Written returns everything that was written.
func (x *Terminal) Written() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.written.String()
}

// Await waits until is accepts the screen, and returns the screen.
func (x *Terminal) Await(t *testing.T, what string, is func(screen string) bool) string {
	t.Helper()
	for late := time.After(time.Minute); ; {
		x.mu.Lock()
		changed := x.changed
		x.mu.Unlock()
		if screen := x.Screen(); is(screen) {
			return screen
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%s isn't shown:\n%s", what, x.Screen())
		}
	}
}
