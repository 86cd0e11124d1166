package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/client"
)

// streamed answers with events. If open, the stream stays open after them.
func streamed(open bool, events ...string) *http.Response {
	body := io.Reader(strings.NewReader(strings.Join(events, "\n\n") + "\n\n"))
	if open {
		r, _ := io.Pipe()
		body = io.MultiReader(body, r)
		return &http.Response{StatusCode: http.StatusOK, Body: &pipe{body, r}}
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}
}

// pipe is a body without further data.
type pipe struct {
	io.Reader
	end *io.PipeReader
}

func (p *pipe) Close() error { return p.end.Close() }

// endsWith closes a body when its request's context ends, as a transport does. The body arrives in small parts.
func endsWith(r *http.Request, answer *http.Response) *http.Response {
	body := answer.Body
	context.AfterFunc(r.Context(), func() { _ = body.Close() })
	answer.Body = &cutOff{body, r}
	return answer
}

type cutOff struct {
	io.ReadCloser
	by *http.Request
}

func (c *cutOff) Read(b []byte) (int, error) {
	if err := c.by.Context().Err(); err != nil {
		return 0, err
	}
	return c.ReadCloser.Read(b[:min(len(b), 64)])
}

const (
	snapshot = "id: e-1\nevent: snapshot\ndata: {\"window\":{\"window\":\"2026-W48\",\"members\":3},\"status\":{\"state\":\"current\"},\n" +
		"data: \"ranks\":\"ordinal\",\"standings\":[{\"rank\":2,\"member\":\"b\",\"points\":5},{\"rank\":1,\"member\":\"a\",\"points\":7}]}"
	entered = "id: e-2\nevent: change\ndata: {\"window\":{\"window\":\"2026-W48\",\"members\":4,\"seconds_left\":9},\"status\":{\"state\":\"lagging\"},\"removed\":[\"b\"],\"standings\":[{\"rank\":1,\"member\":\"c\",\"points\":8},{\"rank\":2,\"member\":\"a\",\"points\":7}]}"
	alone   = "id: e-3\nevent: change\ndata: {\"window\":{\"window\":\"2026-W48\",\"members\":4,\"seconds_left\":8},\"status\":{\"state\":\"current\"},\"removed\":[],\"standings\":[]}"
	away    = "event: problem\ndata: {\"type\":\"/v1/problems/unavailable\",\"title\":\"Redis can't be read\",\"status\":503,\"detail\":\"later\"}"
)

// seen returns what a watch yields, as lines, until the watch ends or there are most of them.
func seen(ctx context.Context, t *testing.T, c *client.Client, most int) (lines []string, last error) {
	t.Helper()
	for live, err := range c.Watch(ctx, weekly, client.WatchQuery{}) {
		if last = err; err != nil {
			lines = append(lines, "error")
		} else {
			line := fmt.Sprintf("%s %d %s:", live.Window.Window, live.Window.Members, live.Status.State)
			for _, s := range live.Standings {
				line += fmt.Sprintf(" %d %s %d", s.Rank, s.Member, s.Points)
			}
			lines = append(lines, line)
		}
		if len(lines) == most {
			break
		}
	}
	return lines, last
}

func TestAWatchHasAllThatIsShownAfterEachEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		var at []time.Duration
		began := time.Now()
		c := by(t, func(r *http.Request) *http.Response {
			require.Equal(t, "Bearer 0123456789abcdef", r.Header.Get("Authorization"))
			require.Contains(t, r.Header.Get("Accept"), "text/event-stream")
			ids, at = append(ids, r.Header.Get("Last-Event-ID")), append(at, time.Since(began))
			switch len(ids) {
			case 1: // the connection breaks within a change
				return endsWith(r, answers(http.StatusOK, strings.Join([]string{"retry: 4000", ":", snapshot, away, ": x\nevent: later\ndata: {}", entered[:150]}, "\n\n")))
			case 2:
				return endsWith(r, streamed(false, entered))
			case 3:
				return refuses("503", "7")
			case 4:
				return endsWith(r, streamed(false, alone, strings.Replace(snapshot, "W48", "W49", 1)))
			}
			return answers(http.StatusNotFound, `{"type":"/v1/problems/not-found","status":404}`, "Content-Type", "application/problem+json")
		})
		lines, last := seen(t.Context(), t, c, 0)
		require.Equal(t, []string{
			"2026-W48 3 current: 1 a 7 2 b 5",
			"error",
			"2026-W48 4 lagging: 1 c 8 2 a 7",
			"2026-W48 4 current: 1 c 8 2 a 7",
			"2026-W49 3 current: 1 a 7 2 b 5",
			"error",
		}, lines)
		var p *client.Problem
		require.ErrorAs(t, last, &p)
		require.Equal(t, "not-found", p.Word())
		require.Equal(t, []string{"", "e-1", "e-2", "e-2", "e-1"}, ids)
		for i, seconds := range []float64{0, 4, 8, 15, 19} {
			require.InDelta(t, seconds, at[i].Seconds(), 1, "connection %d", i)
		}
	})
}

func TestAStreamThatIsQuietIsTakenForDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		began := time.Now()
		c := by(t, func(r *http.Request) *http.Response {
			if n++; n == 2 {
				require.InDelta(t, 33, time.Since(began).Seconds(), 3)
				return endsWith(r, streamed(true, alone))
			}
			return endsWith(r, streamed(true, snapshot))
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("that is all"))
		defer cancel()
		lines, last := seen(ctx, t, c, 0)
		require.Equal(t, []string{"2026-W48 3 current: 1 a 7 2 b 5", "2026-W48 4 current: 1 a 7 2 b 5", "error"}, lines)
		require.ErrorContains(t, last, "that is all")
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, 2, n)
	})
}

func TestALoopMayTakeItsTimeAndLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := by(t, func(r *http.Request) *http.Response { n++; return endsWith(r, streamed(true, snapshot, alone)) })
		left := 2
		for _, err := range c.Watch(t.Context(), weekly, client.WatchQuery{}) {
			require.NoError(t, err)
			time.Sleep(time.Hour)
			if left--; left == 0 {
				break
			}
		}
		require.Equal(t, 1, n)
	})
}

func TestWhatComesOfAStreamIsBoundedAndRead(t *testing.T) {
	for says, events := range map[string]string{
		"more than 1048576 bytes":  "data: " + strings.Repeat("x", 1<<20),
		"an event has more than":   strings.Repeat("data: "+strings.Repeat("x", 1<<15)+"\n", 40),
		"a snapshot can't be read": "event: snapshot\ndata: <",
		"before a snapshot":        entered,
		"a change can't be read":   snapshot + "\n\nevent: change\ndata: <",
		"a problem can't be read":  "event: problem\ndata: <",
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			var ids []string
			c := by(t, func(r *http.Request) *http.Response {
				ids = append(ids, r.Header.Get("Last-Event-ID"))
				if n++; n == 1 {
					return endsWith(r, streamed(false, events))
				}
				return endsWith(r, streamed(true, snapshot))
			})
			var failed error
			for live, err := range c.Watch(t.Context(), weekly, client.WatchQuery{}) {
				failed = errors.Join(failed, err)
				if n == 2 && live != nil {
					break // the watch has continued
				}
			}
			require.ErrorContains(t, failed, says)
			require.Equal(t, []string{"", ""}, ids, "and begins with a snapshot")
		})
	}
}
