package v1

// Bearer tokens. A client needs one of the tokens in a file. The process reads the file every few
// seconds, so tokens change without a restart. A file that is missing or has no token admits no client.
// If the file can't be read for another reason, or has a wrong line, the tokens read last stay valid.

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// TokensEvery is how often the file is read.
const TokensEvery = 5 * time.Second

const (
	leastToken = 16 // characters
	mostTokens = 1000
)

// Tokens are the tokens of a file. Each line has a name, for the log, and a token.
//
//	# what the shop's pages read with
//	shop   v7Qe0m5r4Jx2kT1b…
type Tokens struct {
	path string

	mu     sync.Mutex
	looked time.Time
	all    []token
	failed error // error of the last read
}

type token struct {
	name string
	sum  [sha256.Size]byte
}

// errNoToken reports a file without tokens.
var errNoToken = errors.New("the file has no token: all clients are refused")

// OpenTokens reads a token file.
func OpenTokens(path string) (*Tokens, error) {
	t := &Tokens{path: path}
	t.refresh(time.Now())
	return t, t.failed
}

// refresh reads the file. The caller holds mu, except in OpenTokens.
func (t *Tokens) refresh(now time.Time) {
	t.looked = now
	text, err := os.ReadFile(t.path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			t.all = nil
		}
		t.failed = fmt.Errorf("read the API's tokens: %w", err)
		return
	}
	all, err := parseTokens(text)
	if err != nil {
		if errors.Is(err, errNoToken) {
			t.all = nil
		}
		t.failed = fmt.Errorf("read the API's tokens, %s: %w", t.path, err)
		return
	}
	t.all, t.failed = all, nil
}

// parseTokens parses a token file. Its errors never contain a token.
func parseTokens(text []byte) ([]token, error) {
	var all []token
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if len(words) != 2 {
			return nil, fmt.Errorf("line %d must be a name and a token", n)
		}
		if len(words[1]) < leastToken {
			return nil, fmt.Errorf("line %d: a token must have at least %d characters", n, leastToken)
		}
		all = append(all, token{words[0], sha256.Sum256([]byte(words[1]))})
	}
	switch {
	case lines.Err() != nil:
		return nil, lines.Err()
	case len(all) == 0:
		return nil, errNoToken
	case len(all) > mostTokens:
		return nil, fmt.Errorf("the file has more than %d tokens", mostTokens)
	}
	return all, nil
}

// Err returns the error of the last read of the file.
func (t *Tokens) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// Look reads the file now, even if no request has come, and returns its error.
func (t *Tokens) Look() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refresh(time.Now())
	return t.failed
}

// holder returns the name of the request's token. It compares every token in constant time.
func (t *Tokens) holder(r *http.Request) (string, *problem) {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || given == "" {
		return "", problemf(unauthorized, "A bearer token is required: Authorization: Bearer …")
	}
	t.mu.Lock()
	if now := time.Now(); now.Sub(t.looked) > TokensEvery {
		t.refresh(now)
	}
	all := t.all
	t.mu.Unlock()
	sum, name, found := sha256.Sum256([]byte(strings.TrimSpace(given))), "", 0
	for i := range all {
		if same := subtle.ConstantTimeCompare(sum[:], all[i].sum[:]); same == 1 {
			name, found = all[i].name, 1
		}
	}
	if found == 0 {
		return "", problemf(unauthorized, "Unknown bearer token")
	}
	return name, nil
}
