package v1

// A client of streams for the tests. It implements server-sent events and docs/api.md, and does not know the
// server's code.

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/api/v1/live"
)

// sent is an event. Without a name it is the text before the first event.
type sent struct {
	id, name, data string
	retry          string
}

// nextEvent reads one event, with the strictest interpretation of the standard.
func nextEvent(in *bufio.Reader) (sent, error) {
	var e sent
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, found := strings.Cut(line, ": ")
		switch {
		case line == "":
			return e, nil
		case strings.ContainsAny(line, "\r\x00"):
			return e, fmt.Errorf("a line ends within %q", line)
		case !found:
			return e, fmt.Errorf("%q has no value", line)
		case field == "id" && e.id == "":
			e.id = value
		case field == "event" && e.name == "":
			e.name = value
		case field == "data" && e.data == "":
			e.data = value
		case field == "retry" && e.retry == "":
			e.retry = value
		default:
			return e, fmt.Errorf("%q is no line of an event, or its second", line)
		}
	}
}

// parseEvents returns all events in a text, without retry fields.
func parseEvents(r io.Reader) (all []sent, err error) {
	in := bufio.NewReader(r)
	for {
		e, err := nextEvent(in)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if e.name != "" {
			all = append(all, e)
		}
	}
}

// viewer is a client whose rows come only from events.
type viewer struct {
	t      testing.TB
	answer *http.Response
	in     *bufio.Reader
	end    func()

	arrived chan sent // events read by follow

	window, state string
	rows          map[string]standing
	events        []string // names
	id            string
	retry         string
}

// openStream opens a stream. dial connects to the server.
func openStream(t testing.TB, dial func() (net.Conn, error), path string, header ...string) *viewer {
	t.Helper()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }, DisableCompression: true}
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api"+path, nil)
	require.NoError(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := transport.RoundTrip(r) //nolint:bodyclose // end closes it
	require.NoError(t, err)
	v := &viewer{t: t, answer: answer, in: bufio.NewReader(answer.Body), rows: map[string]standing{}}
	v.end = func() {
		cancel()
		_ = answer.Body.Close()
		transport.CloseIdleConnections()
	}
	t.Cleanup(v.end)
	return v
}

// follow reads events as they arrive from now on. Without follow they stay in the connection until read.
func (v *viewer) follow() *viewer {
	v.arrived = make(chan sent, 10_000)
	go func() {
		defer close(v.arrived)
		for {
			e, err := nextEvent(v.in)
			if err != nil {
				return
			}
			v.arrived <- e
		}
	}()
	return v
}

func (v *viewer) read() (sent, error) {
	if v.arrived == nil {
		return nextEvent(v.in)
	}
	e, ok := <-v.arrived
	if !ok {
		return e, io.EOF
	}
	return e, nil
}

// next processes heartbeats and one other event, and returns its name; "" at the end of the stream.
func (v *viewer) next() string {
	v.t.Helper()
	for {
		e, err := v.read()
		if err != nil {
			return ""
		}
		if e.retry != "" {
			v.retry = e.retry
		}
		switch e.name {
		case "":
		case "heartbeat":
			require.Equal(v.t, sent{name: "heartbeat", data: "{}"}, e)
			v.events = append(v.events, e.name)
		default:
			v.take(e)
			return e.name
		}
	}
}

func (v *viewer) take(e sent) {
	v.t.Helper()
	v.events = append(v.events, e.name)
	require.NoError(v.t, checkEvents([]byte("event: "+e.name+"\ndata: "+e.data+"\n\n")))
	if e.id != "" {
		v.id = e.id
	}
	var data struct {
		Window    struct{ Window string }
		Status    status
		Removed   []string
		Standings []standing
	}
	if e.name == live.Problem {
		require.Empty(v.t, e.id)
		return
	}
	require.NoError(v.t, json.Unmarshal([]byte(e.data), &data))
	if e.name == live.Snapshot {
		v.rows = map[string]standing{}
	}
	require.NotEmpty(v.t, e.id)
	for _, member := range data.Removed {
		require.Contains(v.t, v.rows, member, "who leaves was there")
		delete(v.rows, member)
	}
	for _, s := range data.Standings {
		if e.name == live.Change {
			require.NotEqual(v.t, v.rows[s.Member], s, "a row that is sent isn't the same as before")
		}
		v.rows[s.Member] = s
	}
	v.window, v.state = data.Window.Window, data.Status.State
}

// shown returns the rows sorted by rank. Rows of equal rank are sorted by member, since shared ranks do not define
// an order.
func (v *viewer) shown() []standing { return byRank(slices.Collect(maps.Values(v.rows))) }

func byRank(all []standing) []standing {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b standing) int { return cmp.Or(cmp.Compare(*a.Rank, *b.Rank), cmp.Compare(a.Member, b.Member)) })
	return all
}

// until processes events until holds returns true, for at most 20 seconds.
func (v *viewer) until(holds func() bool) {
	v.t.Helper()
	timer := time.AfterFunc(20*time.Second, v.end)
	defer timer.Stop()
	for !holds() {
		require.NotEmpty(v.t, v.next(), "the stream has ended, with %v and %v", v.events, v.shown())
	}
}
