package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Interactive reports whether somebody types on stdin.
func Interactive(stdin io.Reader) bool {
	in, ok := stdin.(*os.File)
	return ok && term.IsTerminal(int(in.Fd()))
}

// ErrNotTyped says that something else was typed than what was asked for.
var ErrNotTyped = errors.New("confirmation does not match")

// Ask returns nil once the answer is typed, ErrNotTyped for another, and the context's error if
// that ends first. A terminal's read ends with a line alone, so it is left behind then: the
// process ends, too.
func (p *Program) Ask(ctx context.Context, question, answer string) error {
	fmt.Fprint(p.Stderr, question)
	typed := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(p.Stdin).ReadString('\n')
		if err != nil {
			line = "" // what ends without Enter wasn't meant
		}
		typed <- line
	}()
	select {
	case line := <-typed:
		if strings.TrimRight(line, "\r\n") != answer {
			return ErrNotTyped
		}
		return nil
	case <-ctx.Done():
		fmt.Fprintln(p.Stderr)
		return ctx.Err()
	}
}
