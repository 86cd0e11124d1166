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

// Interactive reports whether stdin is a terminal.
func Interactive(stdin io.Reader) bool {
	in, ok := stdin.(*os.File)
	return ok && term.IsTerminal(int(in.Fd()))
}

// ErrNotTyped means that the operator typed something other than the requested answer.
var ErrNotTyped = errors.New("confirmation does not match")

// Ask writes question and returns nil once the answer is typed, ErrNotTyped for any other line, or the
// context's error if the context ends first. In the last case Ask leaves a goroutine behind: a read from a
// terminal ends only with a line, and the process is about to exit.
func (p *Program) Ask(ctx context.Context, question, answer string) error {
	fmt.Fprint(p.Stderr, question)
	typed := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(p.Stdin).ReadString('\n')
		if err != nil {
			line = "" // input that ends without Enter is not a confirmation
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
