package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/standings/standings/client"
	"github.com/standings/standings/test/apitest"
)

// baseURL is the URL of the API for these tests and examples.
var baseURL string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	api, err := apitest.New(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server := httptest.NewServer(api)
	baseURL = server.URL
	code := m.Run()
	server.CloseClientConnections() // examples keep their connections open
	server.Close()
	api.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// roundTrip answers requests without a network, so that tests can simulate time.
type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := f(r)
	answer.Request = r
	return answer, r.Context().Err()
}

// body counts how often it is closed.
type body struct {
	io.Reader
	closed *atomic.Int64
}

func (b *body) Close() error {
	b.closed.Add(1)
	return nil
}

func answers(status int, text string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(text))}
}

const refusal = `{"type":"/v1/problems/overloaded","title":"Too many requests at a time","status":503,"detail":"64 requests are being answered"}`

func refuses(status, after string) *http.Response {
	code := http.StatusServiceUnavailable
	if status == "429" {
		code = http.StatusTooManyRequests
	}
	header := []string{"Content-Type", "application/problem+json"}
	if after != "" {
		header = append(header, "Retry-After", after)
	}
	return answers(code, refusal, header...)
}

func by(t testing.TB, f roundTrip) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{BaseURL: "http://boards.example/shop/", Token: "0123456789abcdef", HTTP: &http.Client{Transport: f}})
	require.NoError(t, err)
	return c
}

func TestARefusalThatPassesIsWaitedOutAndTheRequestSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies []string
		closed := new(atomic.Int64)
		c := by(t, func(r *http.Request) *http.Response {
			text, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, "Bearer 0123456789abcdef", r.Header.Get("Authorization"))
			require.Equal(t, "/shop/v1/boards/global/periods/weekly/windows/current/members/lookup", r.URL.Path)
			answer := refuses("503", "2")
			switch bodies = append(bodies, string(text)); len(bodies) {
			case 2:
				answer = refuses("429", time.Now().Add(3*time.Second).UTC().Format(http.TimeFormat))
			case 3:
				answer = answers(http.StatusOK, `{"absent":["u1"]}`)
			}
			answer.Body = &body{answer.Body, closed}
			return answer
		})
		began := time.Now()
		found, err := c.Lookup(t.Context(), weekly, client.Ordinal, "u1")
		require.NoError(t, err)
		require.Equal(t, []string{"u1"}, found.Absent)
		require.Equal(t, []string{`{"members":["u1"]}`, `{"members":["u1"]}`, `{"members":["u1"]}`}, bodies)
		require.EqualValues(t, 3, closed.Load())
		require.InDelta(t, 5, time.Since(began).Seconds(), 1.2) // times in HTTP headers have whole seconds
	})
}

func TestWhatDoesNotPassIsReturnedAtOnce(t *testing.T) {
	for name, answer := range map[string]func() *http.Response{
		"lost":     func() *http.Response { return refuses("503", "") },
		"too slow": func() *http.Response { return answers(http.StatusGatewayTimeout, "", "Retry-After", "1") },
		"a proxy":  func() *http.Response { return answers(http.StatusBadGateway, "<html>") },
	} {
		n, status := 0, 0
		c := by(t, func(*http.Request) *http.Response {
			n++
			sent := answer()
			status = sent.StatusCode
			return sent
		})
		_, err := c.Window(t.Context(), weekly)
		var p *client.Problem
		require.ErrorAs(t, err, &p, name)
		require.Equal(t, status, p.Status)
		require.NotEmpty(t, p.Title)
		require.Equal(t, 1, n)
	}
}

func TestAWaitThatTheContextWouldNotOutlastIsNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := by(t, func(*http.Request) *http.Response { return refuses("503", "10") })
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.Window(ctx, weekly)
		var p *client.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, "overloaded", p.Word())
		require.Equal(t, 10*time.Second, p.RetryAfter)
		require.Zero(t, time.Since(began))
	})
}

func TestAContextThatEndsWhileARefusalIsWaitedOutLeavesBothErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := by(t, func(*http.Request) *http.Response { return refuses("429", "10") })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		began := time.Now()
		_, err := c.Window(ctx, weekly)
		require.ErrorIs(t, err, context.Canceled)
		var p *client.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, http.StatusTooManyRequests, p.Status)
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestAnAnswerThatIsTooLargeOrNoneIsAnError(t *testing.T) {
	for says, text := range map[string]string{
		"more than 16777216 bytes": `{"standings":[` + strings.Repeat(`{"member":"u1"},`, 1<<20) + `{}]}`,
		"can't be read":            `<html>`,
	} {
		closed := new(atomic.Int64)
		c := by(t, func(*http.Request) *http.Response {
			answer := answers(http.StatusOK, text)
			answer.Body = &body{answer.Body, closed}
			return answer
		})
		_, err := c.Standings(t.Context(), weekly, client.Query{})
		require.ErrorContains(t, err, says)
		require.EqualValues(t, 1, closed.Load())
	}
}

func TestAProblemIsReadNoFurtherThanItCanBeLong(t *testing.T) {
	c := by(t, func(*http.Request) *http.Response {
		return answers(http.StatusBadRequest, `{"type":"`+strings.Repeat("x", 1<<20)+`"}`, "Content-Type", "application/problem+json")
	})
	_, err := c.Window(t.Context(), weekly)
	var p *client.Problem
	require.ErrorAs(t, err, &p)
	require.Equal(t, "about:blank", p.Type)
	require.Empty(t, p.Word())
}

func TestBoardsGoOnAfterTheLastOneOfAPage(t *testing.T) {
	var queries []string
	c := by(t, func(r *http.Request) *http.Response {
		if queries = append(queries, r.URL.RawQuery); len(queries) == 1 {
			return answers(http.StatusOK, `{"boards":[{"board":"a"},{"board":"b c"}],"next_cursor":"b c"}`)
		}
		return answers(http.StatusOK, `{"boards":[{"board":"d"}],"next_cursor":null}`)
	})
	var names []string
	for b, err := range c.Boards(t.Context()) {
		require.NoError(t, err)
		names = append(names, b.Board)
	}
	require.Equal(t, []string{"a", "b c", "d"}, names)
	require.Equal(t, []string{"limit=1000", "cursor=b+c&limit=1000"}, queries)
}

func TestAllWaitsWithItsFirstPageAndEndsWithAnError(t *testing.T) {
	var queries []string
	c := by(t, func(r *http.Request) *http.Response {
		switch queries = append(queries, r.URL.RawQuery); len(queries) {
		case 1:
			return answers(http.StatusOK, `{"standings":[{"rank":4,"member":"a"}],"next_cursor":"x"}`)
		case 2:
			return answers(http.StatusOK, `{"standings":[{"rank":5,"member":"b"}],"next_cursor":"y"}`)
		}
		return answers(http.StatusInternalServerError, "")
	}).WaitingFor(time.Second, client.Record{Topic: "p", Partition: 2, Offset: 7})
	var ranks []int64
	var failed error
	for s, err := range c.All(t.Context(), weekly, client.Query{Limit: 1, Offset: 3}) {
		if err != nil {
			failed = err
			break
		}
		ranks = append(ranks, s.Rank)
	}
	var p *client.Problem
	require.ErrorAs(t, failed, &p)
	require.Equal(t, []int64{4, 5}, ranks)
	require.Equal(t, []string{"limit=1&min_offset=p%2F2%407&offset=3&wait_ms=1000", "cursor=x&limit=1", "cursor=y&limit=1"}, queries)
}

func TestAnExportThatIsCutOffIsAnError(t *testing.T) {
	const row = `{"rank":1,"member":"a","points":1}` + "\n"
	for says, text := range map[string]string{
		"after 1 rows: unexpected EOF":              row,
		"after 2 rows: unexpected EOF":              row + row + `{"rank":2,"mem`,
		"1 of 3 rows have come: unexpected EOF":     row + `{"end":true,"rows":3}` + "\n",
		"row 2 can't be read: invalid character":    row + "<html>\n",
		"after 1 rows: bufio: buffer full":          row + `{"member":"` + strings.Repeat("x", 64<<10) + "\"}\n",
		"500: " + "Internal Server Error":           "",
		"after 0 rows: unexpected EOF":              " ",
		"after 1 rows: " + context.Canceled.Error(): row + "canceled",
	} {
		c := by(t, func(*http.Request) *http.Response {
			answer := answers(http.StatusOK, text)
			if text == "" {
				answer.StatusCode = http.StatusInternalServerError
			}
			if before, ok := strings.CutSuffix(text, "canceled"); ok {
				answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(before), failing{}))
			}
			return answer
		})
		var failed error
		for _, err := range c.Export(t.Context(), weekly) {
			failed = errors.Join(failed, err)
		}
		require.ErrorContains(t, failed, says)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, context.Canceled }

func TestAMemberCanBeCalledAnything(t *testing.T) {
	for _, id := range []string{"a/b", "ü ?&#%2F", "a b+c", "..a", strings.Repeat("\xff", 256)} {
		m, err := connect().Member(t.Context(), weekly, id, "")
		require.NoError(t, err, id)
		require.Equal(t, strings.ToValidUTF8(id, "\ufffd")[:1], m.Standing.Member[:1])
		_, err = connect().Around(t.Context(), weekly, id, client.AroundQuery{IfMissing: "top"})
		require.NoError(t, err, id)
	}
	for _, id := range []string{"", ".", ".."} {
		_, err := connect().Member(t.Context(), weekly, id, "")
		require.Error(t, err)
		require.NotErrorAs(t, err, new(*client.Problem), "it isn't sent")
	}
	found, err := connect().Lookup(t.Context(), weekly, "", "..")
	require.NoError(t, err)
	require.Equal(t, []string{".."}, found.Absent)
	_, err = connect().MemberOfBoards(t.Context(), "u42", client.BoardsQuery{Boards: []string{"global,arena"}})
	require.Error(t, err)
}

func TestWhereTheAPIIsHasToBeAURL(t *testing.T) {
	for _, base := range []string{"", "localhost:8090", "boards.example", "ftp://boards.example", "http://", "http://a/?x=1", "http://a/#x", "://"} {
		_, err := client.New(client.Config{BaseURL: base})
		require.Error(t, err, base)
	}
	for _, base := range []string{"ftp://me:secret@boards.example", "http://me:secret@boards.example:x/"} {
		_, err := client.New(client.Config{BaseURL: base})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
	}
}
