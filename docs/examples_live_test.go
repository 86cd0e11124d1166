package docs

// The program that follows a stream: it has no end of its own.

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/standings/standings/test/apitest"
)

// It shows the snapshot, comes again where a stream ends, and does what a change says: from where it
// was, as its id shows.
func TestTheExampleOfAStreamShowsABoardAsItMoves(t *testing.T) {
	t.Parallel()
	program := nodeFor(t, filepath.Join("examples", "live.mts"))
	api, err := apitest.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	var streams atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer 0123456789abcdef" {
			t.Error("it comes without the token")
		}
		switch streams.Add(1) {
		case 1: // busy
			w.Header().Set("Retry-After", "1")
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprint(w, `{"detail":"2 streams are open"}`)
		case 2: // one that ends
			ctx, cancel := context.WithTimeout(r.Context(), time.Second)
			defer cancel()
			api.ServeHTTP(w, r.WithContext(ctx))
		case 3:
			if id := r.Header.Get("Last-Event-ID"); !strings.HasSuffix(id, "-1") {
				t.Errorf("it goes on from %q", id)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			for _, part := range []string{ // cut where a line and a letter are
				"retry: 10\n\nevent: heartbeat\ndata: {}\n\nid: x-2\nevent: chan", "ge\ndata: {\"window\":{\"window\":\"2026-W48\",\"members\":16},\"status\":{\"state\":\"lagging\"},\"removed\":[\"Gita\"],\"standings\":[{\"rank\":2,\"member\":\"Zo\xc3",
				"\xab\",\"points\":4210},{\"rank\":3,\"member\":\"u42\",\"points\":4210}]}\n\nevent: problem\ndata: {\"detail\":\"Redis is away\"}\n\n",
			} {
				_, _ = fmt.Fprint(w, part)
				w.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond) // so that they come one by one; it's right if they don't
			}
		default: // wrong for good
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"detail":"there is no such board"}`)
		}
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, program[0], program[1:]...)
	run.Env = append(os.Environ(), "STANDINGS_URL="+server.URL, "STANDINGS_TOKEN=0123456789abcdef")
	output, err := run.CombinedOutput()
	if run.ProcessState.ExitCode() != 1 {
		t.Errorf("it ends by itself: %v", err)
	}
	const want = `2 streams are open
2026-W48: 15 members, current
1 Kalobi 4210
2 u42 4210
3 Nori 3999
4 Anka 3120
5 Bo 2750
6 Chidi 2750
7 Dara 2750
8 Emi 1980
9 Finn 1500
10 Gita 1210
2026-W48: 16 members, lagging
1 Kalobi 4210
2 Zoë 4210
3 u42 4210
3 Nori 3999
4 Anka 3120
5 Bo 2750
6 Chidi 2750
7 Dara 2750
8 Emi 1980
9 Finn 1500
Redis is away
there is no such board
`
	if string(output) != want {
		t.Errorf("it prints\n%s\nand not\n%s", output, want)
	}
}
