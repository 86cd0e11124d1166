package main

// This file tests the confirmation before a removal.

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/drop"
)

// person imitates a person at a terminal: it records the output, and types input.
type person struct {
	mu    sync.Mutex
	shown bytes.Buffer
	asked chan struct{} // closed when the question is shown
	keys  *io.PipeWriter
}

const question = "To remove all of it, type the prefix: "

func (p *person) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := strings.Contains(p.shown.String(), question)
	p.shown.Write(b)
	if !before && strings.Contains(p.shown.String(), question) {
		close(p.asked)
	}
	return len(b), nil
}

func (p *person) saw() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String()
}

func (p *person) types(text string) { _, _ = io.WriteString(p.keys, text) }

// answers runs the command for a person, who acts once the question is shown. It returns the exit code.
func answers(t *testing.T, environ []string, prefix string, act func(p *person, interrupt func())) (int, string) {
	t.Helper()
	in, keys := io.Pipe()
	t.Cleanup(func() { _ = keys.Close() })
	who := &person{asked: make(chan struct{}), keys: keys}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	acted := make(chan struct{})
	go func() {
		defer close(acted)
		select {
		case <-who.asked:
			act(who, interrupt)
		case <-ctx.Done():
		}
	}()
	p := &cli.Program{Environ: environ, Stdin: in, Stdout: who, Stderr: who, Interactive: true}
	code := p.Run(ctx, p.Root("unknown", drop.Command(p)), []string{"drop", "--prefix", prefix})
	interrupt()
	<-acted
	return code, who.saw()
}

func TestADropIsDoneOnlyOnceThePrefixIsTyped(t *testing.T) {
	t.Parallel()
	const notTyped = "consumer: the input is not the prefix: nothing was removed\n"
	for name, try := range map[string]struct {
		act    func(p *person, interrupt func(), c *redis.Client, prefix string)
		says   string
		code   int
		remain int
	}{
		"the prefix":       {func(p *person, _ func(), _ *redis.Client, prefix string) { p.types(prefix + "\n") }, "Removed 4 keys in ", 0, 0},
		"nothing":          {func(p *person, _ func(), _ *redis.Client, _ string) { p.types("\n") }, notTyped, 1, 4},
		"another prefix":   {func(p *person, _ func(), _ *redis.Client, prefix string) { p.types(prefix + "2\n") }, notTyped, 1, 4},
		"the end of input": {func(p *person, _ func(), _ *redis.Client, _ string) { _ = p.keys.Close() }, notTyped, 1, 4},
		"without Enter": {func(p *person, _ func(), _ *redis.Client, prefix string) {
			p.types(prefix)
			_ = p.keys.Close()
		}, notTyped, 1, 4},
		"an interrupt": {func(_ *person, interrupt func(), _ *redis.Client, _ string) { interrupt() }, "\nconsumer: interrupted: nothing was removed\n", 1, 4},
		// While a person hesitates, a consumer that was thought to be stopped may start.
		"a consumer": {func(p *person, _ func(), c *redis.Client, prefix string) {
			reports(t, c, prefix, "host-1")
			p.types(prefix + "\n")
		}, " is in use: host-1 reported within the last 30 seconds, for 1 partition. Stop them and wait that long; nothing was removed\n", 1, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, prefix, environ := leftovers(t)
			code, shown := answers(t, environ, prefix, func(p *person, interrupt func()) { try.act(p, interrupt, c, prefix) })
			before, after, _ := strings.Cut(shown, question)
			require.Equal(t, try.code, code, shown)
			require.Contains(t, before, "Under the prefix "+prefix+": 1 window (global)")
			require.Contains(t, after, try.says)
			require.Equal(t, try.remain, keysUnder(t, c, prefix))
		})
	}
}
