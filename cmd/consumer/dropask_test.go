package main

// This file tests the confirmation before a removal.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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

// drops runs the command for a person, who acts once the question is shown. It returns the exit code.
func drops(t *testing.T, environ []string, prefix string, act func(p *person, interrupt func())) (int, string) {
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

func TestADropIsDoneOnceThePrefixIsTyped(t *testing.T) {
	t.Parallel()
	c, prefix, environ := leftovers(t)
	code, shown := drops(t, environ, prefix, func(p *person, _ func()) { p.types(prefix + "\n") })
	before, _, _ := strings.Cut(shown, question)
	if code != 0 || !strings.Contains(before, "Under the prefix "+prefix+": 1 window (global)") || !strings.Contains(shown, "Removed 4 keys in ") || keysUnder(t, c, prefix) != 0 {
		t.Errorf("exit code %d: %s", code, shown)
	}
}

func TestADropIsNotDoneByAnyOtherAnswer(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(p *person, prefix string){
		"another prefix":   func(p *person, prefix string) { p.types(prefix + "2\n") },
		"the end of input": func(p *person, _ string) { _ = p.keys.Close() },
		"without Enter": func(p *person, prefix string) {
			p.types(prefix)
			_ = p.keys.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, prefix, environ := leftovers(t)
			code, shown := drops(t, environ, prefix, func(p *person, _ func()) { act(p, prefix) })
			if code != 1 || !strings.HasSuffix(shown, question+"consumer: the input is not the prefix: nothing was removed\n") || keysUnder(t, c, prefix) != 4 {
				t.Errorf("exit code %d: %s", code, shown)
			}
		})
	}
}

func TestADropThatAsksEndsAtOnceWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	c, prefix, environ := leftovers(t)
	code, shown := drops(t, environ, prefix, func(_ *person, interrupt func()) { interrupt() })
	if code != 1 || !strings.HasSuffix(shown, question+"\nconsumer: interrupted: nothing was removed\n") || keysUnder(t, c, prefix) != 4 {
		t.Errorf("exit code %d: %s", code, shown)
	}
}

// While a person hesitates, a consumer that was thought to be stopped may start.
func TestADropLooksAgainAfterTheAnswer(t *testing.T) {
	t.Parallel()
	c, prefix, environ := leftovers(t)
	code, shown := drops(t, environ, prefix, func(p *person, _ func()) {
		line := fmt.Sprintf(`{"owner":"host-1","state":"running","at":%q}`, time.Now().UTC().Format(time.RFC3339Nano))
		if err := c.HSet(t.Context(), prefix+":{0}:workers", "points/0", line).Err(); err != nil {
			t.Error(err)
		}
		p.types(prefix + "\n")
	})
	want := question + "consumer: " + prefix + " is in use: host-1 reported within the last 30 seconds, for 1 partition. Stop them and wait that long; nothing was removed\n"
	if code != 1 || !strings.HasSuffix(shown, want) || keysUnder(t, c, prefix) != 5 {
		t.Errorf("exit code %d: %s", code, shown)
	}
}

func TestADropWritesNothingRawToATerminal(t *testing.T) {
	t.Parallel()
	c, prefix, environ := leftovers(t)
	pipe := c.Pipeline()
	pipe.ZAdd(t.Context(), prefix+":{0}:eu\x1b]0;pwned\a\nThere is nothing:weekly:2100-W01", redis.Z{Score: 1, Member: "ann"})
	line := fmt.Sprintf(`{"owner":"host\u001b[2J\nforged","state":"running","at":%q}`, time.Now().UTC().Format(time.RFC3339Nano))
	pipe.HSet(t.Context(), prefix+":{0}:workers", "points/0", line)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	code, out, errs := execute(t, environ, "drop", "--prefix", prefix, "--yes")
	if code != 1 || strings.ContainsAny(out+errs, "\x1b\a") || strings.Count(out, "\n") != 1 || strings.Count(errs, "\n") != 1 ||
		!strings.Contains(out, `(eu\x1b]0;pwned\x07\x0aThere is nothing, global)`) || !strings.Contains(errs, `is in use: host\x1b[2J\x0aforged reported`) {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
