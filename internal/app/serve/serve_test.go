package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	v1 "github.com/standings/standings/internal/api/v1"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

// served is a server and the addresses of its ports.
type served struct {
	api, operations string
	end             func() error
}

// start serves a configuration, and waits for both ports.
func start(t *testing.T, environ []string) *served {
	t.Helper()
	l, err := config.Load("", append(environ, "STANDINGS_API_LISTEN=127.0.0.1:0", "STANDINGS_LISTEN=127.0.0.1:0"))
	require.NoError(t, err)
	core, logged := observer.New(zap.InfoLevel)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, l.Config, zap.New(core)) }()
	address := func(message string) (at string) {
		require.Eventually(t, func() bool {
			for _, entry := range logged.FilterMessage(message).All() {
				at = fmt.Sprint("http://", entry.ContextMap()["address"])
			}
			return at != ""
		}, 20*time.Second, 5*time.Millisecond)
		return at
	}
	s := &served{api: address("API's port open"), operations: address("operations port open")}
	s.end = func() error {
		cancel()
		err := <-ended
		ended <- err
		return err
	}
	t.Cleanup(func() { require.NoError(t, s.end()) })
	return s
}

// get returns the status and the body of an answer.
func get(t *testing.T, url string, token ...string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for _, text := range token {
		r.Header.Set("Authorization", "Bearer "+text)
	}
	answer, err := client.Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode, string(body)
}

// A reshard was killed after its switch. The old shards have no mark yet, and members banned since then are
// hidden only on the new ones.
func TestAReshardIsFollowedThatWasKilledAfterItsSwitch(t *testing.T) {
	u1 := clitest.Member("u1", 5, "2026-11-16T10:00:00Z")
	old := clitest.StandingsIn(t, 1, 0)
	old.Add(t, "global", u1)
	s := start(t, append(old.Environ, "STANDINGS_KAFKA_BROKERS=127.0.0.1:1"))
	points := func() string {
		_, body := get(t, s.api+"/v1/boards/global/periods/weekly/windows/"+clitest.Window+"/members/u1")
		return regexp.MustCompile(`"points": *(-?\d+)`).FindString(body)
	}
	require.Equal(t, `"points":5`, points())

	prefix := old.Reader.Config.Redis.Prefix
	switched := clitest.StandingsAt(t, old.Reader.Config.Redis.Addresses[0], prefix, 3, 0)
	u1.Points = 6
	switched.Add(t, "global", u1)
	require.Equal(t, `"points":5`, points(), "nothing has switched")
	require.NoError(t, old.Reader.Client.Set(t.Context(), ranking.NumberKey(prefix), "3", 0).Err())
	require.Eventually(t, func() bool { return points() == `"points":6` }, 20*time.Second, 10*time.Millisecond)
}

func TestBoardsAreServedWithRedisAlone(t *testing.T) {
	for _, shards := range []int{1, 3} {
		w := clitest.StandingsIn(t, shards, 0)
		w.Add(t, "global", clitest.Member("u1", 5, "2026-11-16T10:00:00Z"), clitest.Member("u2", 7, "2026-11-16T11:00:00Z"))
		s := start(t, append(w.Environ, "STANDINGS_KAFKA_BROKERS=127.0.0.1:1"))
		status, body := get(t, s.api+"/v1/boards")
		require.Equal(t, http.StatusOK, status, body)
		var list struct {
			Boards []struct {
				Periods []struct{ Period, Last string }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &list))
		require.Len(t, list.Boards, 1)
		at := list.Boards[0].Periods[0]
		status, body = get(t, s.api+"/v1/boards/global/periods/"+at.Period+"/windows/"+at.Last+"/standings")
		require.Equal(t, http.StatusOK, status, body)
		require.Less(t, strings.Index(body, `"u2"`), strings.Index(body, `"u1"`))

		require.Eventually(t, func() bool {
			status, _ := get(t, s.operations+"/readyz")
			return status == http.StatusOK
		}, 20*time.Second, 5*time.Millisecond)
		_, metrics := get(t, s.operations+"/metrics")
		require.Contains(t, metrics, `standings_api_requests_total{operation="listStandings",status="200"} 1`)
		require.Contains(t, metrics, "standings_ready 1\n")
		require.Contains(t, metrics, "standings_build_info{")
		require.NoError(t, s.end())
	}
}

// An open stream does not delay the end for the whole shutdown_timeout.
func TestStreamsEndWithTheProcess(t *testing.T) {
	w := clitest.StandingsOf(t, 0)
	w.Add(t, "global", clitest.Member("u1", 5, "2026-11-16T10:00:00Z"))
	s := start(t, append(w.Environ, "STANDINGS_SHUTDOWN_TIMEOUT=10m"))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.api+"/v1/boards/global/periods/weekly/windows/current/stream", nil)
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() && lines.Text() != "event: snapshot" {
	}
	require.NoError(t, lines.Err())
	_, metrics := get(t, s.operations+"/metrics")
	require.Contains(t, metrics, "standings_api_streams 1\n")
	require.Contains(t, metrics, `standings_api_stream_events_total{event="snapshot"} 1`)
	require.NotContains(t, metrics, `standings_api_request_seconds_count{operation="streamWindow"}`)
	began := time.Now()
	require.NoError(t, s.end())
	require.Less(t, time.Since(began), 20*time.Second) // answers have a minute
	for lines.Scan() {
	}
	require.NoError(t, lines.Err(), "the answer is whole")
}

func TestReadinessSaysThatRedisIsAway(t *testing.T) {
	closed := clitest.ClosedPort(t)
	s := start(t, []string{"STANDINGS_REDIS_ADDRESSES=" + closed})
	require.Eventually(t, func() bool {
		status, body := get(t, s.operations+"/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "can't connect to Redis at "+closed)
	}, 20*time.Second, 5*time.Millisecond)
	status, _ := get(t, s.operations+"/healthz")
	require.Equal(t, http.StatusOK, status)
	status, body := get(t, s.api+"/v1/boards")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.NotContains(t, body, closed)
}

func TestATokenIsNeededWhereThereIsAFile(t *testing.T) {
	w := clitest.StandingsOf(t, 0)
	path := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, []byte("shop 0123456789abcdef\n"), 0o600))
	s := start(t, append(w.Environ, "STANDINGS_API_TOKENS_FILE="+path))
	status, _ := get(t, s.api+"/v1/boards")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = get(t, s.api+"/v1/boards", "0123456789abcdef")
	require.Equal(t, http.StatusOK, status)
}

// Boards are still served meanwhile, so an orchestrator must not treat the process as failed.
func TestTokensThatCannotBeReadAnyMoreAreAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		core, logged := observer.New(zap.InfoLevel)
		p := &Port{metrics: v1.NewMetrics()}
		for _, setting := range []string{"api.tokens_file", "api.bans_tokens_file"} {
			path := filepath.Join(dir, setting)
			require.NoError(t, os.WriteFile(path, []byte("shop 0123456789abcdef\n"), 0o600))
			tokens, err := v1.OpenTokens(path)
			require.NoError(t, err)
			p.files = append(p.files, &tokensFile{setting, tokens, nil})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		defer watching.Wait()
		defer cancel()
		watching.Go(func() { p.watchTokens(ctx, zap.New(core)) })
		unreadable := func(setting string) float64 {
			all := prometheus.NewRegistry()
			all.MustRegister(p.metrics)
			families, err := all.Gather()
			require.NoError(t, err)
			for _, f := range families {
				for _, m := range f.GetMetric() {
					if f.GetName() == "standings_api_tokens_unreadable" && m.GetLabel()[0].GetValue() == setting {
						return m.GetGauge().GetValue()
					}
				}
			}
			t.Fatal("there is no such metric")
			return 0
		}
		look := func() { // for two checks of the file; the second is not logged again
			time.Sleep(2*v1.TokensEvery + time.Second)
			synctest.Wait()
		}
		look()
		require.Empty(t, p.Warnings())
		require.Empty(t, logged.All())

		bad := filepath.Join(dir, "api.bans_tokens_file")
		require.NoError(t, os.WriteFile(bad, []byte("tool s3cret\n"), 0o600))
		look()
		warnings := p.Warnings()
		require.Len(t, warnings, 1)
		require.Equal(t, "tokens", warnings[0].Reason)
		require.Contains(t, warnings[0].What, "api.bans_tokens_file: ")
		require.Contains(t, warnings[0].What, "line 1: a token must have at least 16 characters")
		require.InDelta(t, 1, unreadable("api.bans_tokens_file"), 0)
		require.InDelta(t, 0, unreadable("api.tokens_file"), 0)
		require.Equal(t, 1, logged.FilterMessageSnippet("a file of tokens is missing, empty or wrong").Len())

		require.NoError(t, os.Remove(bad)) // another cause
		look()
		require.Len(t, p.Warnings(), 1)
		require.Equal(t, 2, logged.FilterLevelExact(zap.WarnLevel).Len())

		require.NoError(t, os.WriteFile(bad, []byte("tool 0123456789abcdef0\n"), 0o600))
		look()
		require.Empty(t, p.Warnings())
		require.InDelta(t, 0, unreadable("api.bans_tokens_file"), 0)
		require.Equal(t, 1, logged.FilterMessage("the file of tokens can be read again").Len())
		for _, entry := range logged.All() {
			require.NotContains(t, fmt.Sprint(entry.ContextMap()), "s3cret")
		}
	})
}

func TestNobodyIsBannedWhereThereIsNoKafka(t *testing.T) {
	w := clitest.StandingsOf(t, 0)
	s := start(t, append(w.Environ, "STANDINGS_KAFKA_BANS_TOPIC=bans", "STANDINGS_API_BANS_TOKENS_FILE=/nowhere/it/isnt/read"))
	status, body := get(t, s.api+"/v1/bans", "0123456789abcdef")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, body, "use consumer run with kafka.bans_topic and api.bans_tokens_file")
}

func TestBansNeedATopicAndTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, []byte("tool 0123456789abcdef\n"), 0o600))
	for says, environ := range map[string][]string{
		"kafka.bans_topic is not set":     {"STANDINGS_API_BANS_TOKENS_FILE=" + path},
		"api.bans_tokens_file is not set": {"STANDINGS_KAFKA_BANS_TOPIC=bans"},
		"":                                {"STANDINGS_KAFKA_BANS_TOPIC=bans", "STANDINGS_API_BANS_TOKENS_FILE=" + path},
		"open":                            {"STANDINGS_KAFKA_BANS_TOPIC=bans", "STANDINGS_API_BANS_TOKENS_FILE=/nowhere/tokens"},
	} {
		l, err := config.Load("", environ)
		require.NoError(t, err)
		b, err := openBans(l.Config, new(atomic.Pointer[bans.Desk]))
		if says == "open" {
			require.ErrorContains(t, err, "api.bans_tokens_file")
			continue
		}
		require.NoError(t, err)
		require.Contains(t, b.Off, says)
		require.Equal(t, says == "", b.Off == "" && b.Tokens != nil && b.Desk() == nil)
	}
}
