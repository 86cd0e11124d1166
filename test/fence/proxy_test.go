package fence

// A network between the consumers and Redis that the test rules: it can lose the
// answer of an apply that Redis has executed, and keep an apply back until whoever
// sent it has given it up.

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fate is what becomes of an apply on its way.
type fate struct {
	// held, if given, keeps the request back until it is closed. The connection's end
	// doesn't end it: the request is on its way.
	held <-chan struct{}
	// lost says what the client gets in place of the answer that Redis gave.
	lost loss
}

type loss int

const (
	answered loss = iota
	silence       // nothing, until it gives up
	hangUp        // the connection's end
)

// proxy passes everything between clients and a server, but for the applies, of
// which decide is asked.
type proxy struct {
	address string
	server  string
	decide  func(number int, call []string) fate

	mu      sync.Mutex
	applies int
	held    int // applies that are kept back
	open    map[net.Conn]bool
}

// startProxy starts one for a test. decide is told an apply's number, from 1, and is
// called by one goroutine at a time.
func startProxy(t *testing.T, server string, decide func(int, []string) fate) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: listener.Addr().String(), server: server, decide: decide, open: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for c := range p.open {
			_ = c.Close()
		}
		p.mu.Unlock()
		running.Wait()
	})
	return p
}

// rule changes what is asked about applies from now on.
func (p *proxy) rule(decide func(int, []string) fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decide, p.applies = decide, 0
}

// Applies is how many came by since the last rule.
func (p *proxy) Applies() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.applies
}

func (p *proxy) keep(c net.Conn) net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
	return c
}

func (p *proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// serve passes one connection's requests on, one after the other, as the client
// sends them: it waits for an answer before its next request.
func (p *proxy) serve(client net.Conn) {
	defer p.drop(p.keep(client))
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return // as if there were no server
	}
	defer p.drop(p.keep(server))
	answers := make(chan loss, 1)
	var back sync.WaitGroup
	back.Go(func() { passAnswers(client, server, answers) })
	defer back.Wait()
	defer func() { _ = server.Close() }()
	defer close(answers)
	requests := bufio.NewReaderSize(client, 64<<10)
	for {
		raw, call, err := readRequest(requests)
		if err != nil {
			return
		}
		f := fate{}
		if isApply(call) {
			f = p.judge(call)
		}
		if f.held != nil {
			p.hold(f.held)
		}
		answers <- f.lost
		if _, err := server.Write(raw); err != nil {
			return
		}
	}
}

func (p *proxy) judge(call []string) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.applies++
	return p.decide(p.applies, call)
}

func (p *proxy) hold(until <-chan struct{}) {
	p.mu.Lock()
	p.held++
	p.mu.Unlock()
	<-until
	p.mu.Lock()
	p.held--
	p.mu.Unlock()
}

// waiting says how many applies are still kept back.
func (p *proxy) waiting() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held > 0 {
		return fmt.Sprintf("%d applies are kept back", p.held)
	}
	return ""
}

// passAnswers passes on what the server answers, by the fate of the request that it
// answers: the latest. Requests that came with one whose answer ends it are taken all the
// same, so that whoever passes them on gets to the end.
func passAnswers(client, server net.Conn, fates <-chan loss) {
	defer func() {
		_ = client.Close()
		for range fates {
		}
	}()
	buffer := make([]byte, 64<<10)
	now := answered
	for {
		n, err := server.Read(buffer)
		select {
		case next, ok := <-fates:
			if ok {
				now = next
			}
		default: // more of the same answer
		}
		switch {
		case now == hangUp || err != nil:
			return
		case now == silence: // the client gives up and closes
		default:
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
}

// readRequest reads a command as clients write it: a list of texts.
func readRequest(r *bufio.Reader) (raw []byte, words []string, err error) {
	number := func(kind byte) (int, error) {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		raw = append(raw, line...)
		if len(line) < 4 || line[0] != kind {
			return 0, fmt.Errorf("not a command: %q", line)
		}
		return strconv.Atoi(string(line[1 : len(line)-2]))
	}
	count, err := number('*')
	for range count {
		length, err := number('$')
		if err != nil {
			return nil, nil, err
		}
		at := len(raw)
		raw = append(raw, make([]byte, length+2)...)
		if _, err := io.ReadFull(r, raw[at:]); err != nil {
			return nil, nil, err
		}
		words = append(words, string(raw[at:at+length]))
	}
	return raw, words, err
}

// isApply tells apply.lua from the other scripts by the keys that it is given.
func isApply(call []string) bool {
	return len(call) > 7 && strings.HasPrefix(strings.ToLower(call[0]), "eval") &&
		strings.HasSuffix(call[3], ":ledger") && strings.HasSuffix(call[5], ":hold") && strings.HasSuffix(call[6], ":windows")
}

// after is a channel that is closed after a time.
func after(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}

func TestAProxyEndsWhateverItsServerLeavesUnanswered(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1))
			_ = c.(*net.TCPConn).CloseWrite() // it takes requests, and answers none
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.Run("a proxy", func(t *testing.T) {
			p := startProxy(t, server.Addr().String(), nil)
			client, err := net.Dial("tcp", p.address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			if _, err := client.Write([]byte(strings.Repeat("*1\r\n$4\r\nPING\r\n", 100))); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, client)
		})
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("its end is waited for")
	}
}
