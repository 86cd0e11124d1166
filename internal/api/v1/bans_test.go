package v1

// Bans by the API, with franz-go's fake Kafka broker, and boards that a keeper updates from the bans topic.

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/bans/hiding"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/reading"
)

const (
	bansToken   = "0123456789moderator"
	readerToken = "0123456789reader"
)

// moderated is an API that serves bans.
type moderated struct {
	*fixture

	cluster *kfake.Cluster
	kafka   *kafka.Client
	desk    *bans.Desk // nil: the topic is not found yet
	logged  *observer.ObservedLogs
}

func newModerated(t *testing.T, of ledger.Shards, change ...func(*Config)) *moderated {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bans")
	require.NoError(t, os.WriteFile(path, []byte("tool "+bansToken+"\n"), 0o600))
	tokens, err := OpenTokens(path)
	require.NoError(t, err)
	core, logged := observer.New(zap.DebugLevel)
	m := &moderated{logged: logged}
	m.fixture = newFixture(t, of, codec.Readable, func(c *Config, _ *reading.Config) {
		c.Log = zap.New(core)
		c.Bans = Bans{Tokens: tokens, Desk: func() *bans.Desk { return m.desk }}
		for _, do := range change {
			do(c)
		}
	})
	m.cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "bans"))
	require.NoError(t, err)
	t.Cleanup(m.cluster.Close)
	transport := &kafka.Transport{MetadataTTL: 100 * time.Millisecond, MetadataTopics: []string{"bans"}}
	t.Cleanup(transport.CloseIdleConnections)
	m.kafka = &kafka.Client{Addr: kafka.TCP(m.cluster.ListenAddrs()...), Transport: kafkaconn.Robust(transport), Timeout: 10 * time.Second}
	f := bans.NewFollower(m.kafka, "bans", zap.NewNop())
	keeper := bans.NewKeeper(f, hiding.In(m.boards), zap.NewNop())
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	running.Go(func() { keeper.Watch(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	require.NoError(t, f.Ready(t.Context(), 0))
	m.desk = &bans.Desk{Publisher: &bans.Publisher{Follower: f}, Standings: func(context.Context) (bans.Standings, error) { return hiding.In(m.boards), nil }}
	return m
}

// send sends a request about bans with a token. A body is for POST.
func (m *moderated) send(method, query, body, token string) said {
	m.t.Helper()
	r := httptest.NewRequest(method, "/v1/bans?"+query, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return ask(m.t, m, r)
}

func (m *moderated) ban(body string) banned {
	m.t.Helper()
	a := m.send(http.MethodPost, "wait_ms=10000", body, bansToken)
	require.Equal(m.t, http.StatusOK, a.status, "%s", a.body)
	require.Equal(m.t, "no-store", a.header.Get("Cache-Control"))
	return decode[banned](m.t, a.body)
}

func (m *moderated) list(query string) bansList {
	m.t.Helper()
	a := m.send(http.MethodGet, query, "", bansToken)
	require.Equal(m.t, http.StatusOK, a.status, "%s", a.body)
	require.Equal(m.t, "no-store", a.header.Get("Cache-Control"))
	return decode[bansList](m.t, a.body)
}

// shown reports whether a member is visible on a board.
func (m *moderated) shown(board, member string) bool {
	m.t.Helper()
	return read[memberAnswer](m.fixture, w(board)+"/members/"+member).Standing.Rank != nil
}

func TestAMemberIsBannedAndShownAgainByTheAPI(t *testing.T) {
	t.Parallel()
	for _, of := range []ledger.Shards{1, 3} {
		m := newModerated(t, of)
		m.put("global", m.standing("global", "u1", 5, 70), m.standing("global", "u2", 6, 60))
		m.put("arena", m.standing("arena", "u1", 5, 7, 1), m.standing("arena", "u2", 5, 6, 1))

		began := time.Now().Add(-time.Minute)
		require.Equal(t, banned{Member: "u1", State: "banned", Done: true}, m.ban(`{"member":"u1","reason":"aimbot, case 1234"}`))
		require.False(t, m.shown("global", "u1"))
		require.False(t, m.shown("arena", "u1"))
		require.True(t, m.shown("global", "u2"))
		until := timeMS(time.Now().Add(time.Hour).UnixMilli())
		require.Equal(t, banned{Member: "u2", Board: new("arena"), State: "banned", Until: &until, Done: true},
			m.ban(`{"member":"u2","board":"arena","reason":"smurf","by":"eve","until":"`+until+`"}`))
		require.True(t, m.shown("global", "u2"))
		require.False(t, m.shown("arena", "u2"))

		all := m.list("").Bans
		require.Len(t, all, 2)
		for i := range all {
			at, err := time.Parse(time.RFC3339, all[i].At)
			require.NoError(t, err)
			require.WithinRange(t, at, began, time.Now().Add(time.Minute))
			all[i].At = ""
		}
		require.Equal(t, []banAnswer{
			{Member: "u1", Reason: "aimbot, case 1234", By: "tool", State: "banned", Done: new(true)},
			{Member: "u2", Board: new("arena"), Reason: "smurf", By: "eve@tool", Until: &until, State: "banned", Done: new(true)},
		}, all)
		require.Len(t, m.list("member=u2").Bans, 1)

		for query, want := range map[string]banned{
			"member=u1":             {Member: "u1", State: "shown", Done: true},
			"member=u2&board=arena": {Member: "u2", Board: new("arena"), State: "shown", Done: true},
		} {
			a := m.send(http.MethodDelete, query+"&wait_ms=10000", "", bansToken)
			require.Equal(t, http.StatusOK, a.status, "%s", a.body)
			require.Equal(t, want, decode[banned](t, a.body))
			require.Equal(t, http.StatusNotFound, m.send(http.MethodDelete, query, "", bansToken).status)
		}
		require.True(t, m.shown("global", "u1"))
		require.True(t, m.shown("arena", "u2"))
		require.Empty(t, m.list("").Bans)
		m.saysNothing("aimbot", "smurf", "u1", "u2", bansToken)
	}
}

// saysNothing requires that no log entry contains the words. The log includes all requests.
func (m *moderated) saysNothing(words ...string) {
	m.t.Helper()
	require.NotEmpty(m.t, m.logged.All())
	for _, entry := range m.logged.All() {
		text, err := json.Marshal(entry.ContextMap())
		require.NoError(m.t, err)
		for _, word := range words {
			require.NotContains(m.t, string(text)+entry.Message, word)
		}
	}
}

func TestBansAreListedPageByPage(t *testing.T) {
	t.Parallel()
	m := newModerated(t, 1)
	for _, k := range []bans.Key{{Member: "a"}, {Board: "eu", Member: "a"}, {Member: "b:c"}, {Board: "eu", Member: "z"}} {
		require.NoError(t, m.desk.Publisher.Put(t.Context(), &bans.Record{Key: k, Reason: "x", At: time.Now()}))
	}
	require.NoError(t, m.desk.Publisher.Put(t.Context(), &bans.Record{Key: bans.Key{Member: "o"}, Reason: "x", At: time.Now().Add(-time.Hour), Until: time.Now().Add(-time.Minute)}))
	require.NoError(t, m.desk.Publisher.Put(t.Context(), &bans.Record{Key: bans.Key{Member: "gone"}, Reason: "x", At: time.Now(), Erased: true}))
	var all []string
	for cursor, n := "", 0; ; n++ {
		page := m.list("limit=2" + cursor)
		for _, b := range page.Bans {
			board := "all"
			if b.Board != nil {
				board = *b.Board
			}
			all = append(all, b.Member+" "+board+" "+b.State)
		}
		if page.Next == nil {
			require.Equal(t, 2, n)
			break
		}
		cursor = "&cursor=" + url.QueryEscape(*page.Next)
	}
	require.Equal(t, []string{"a all banned", "a eu banned", "b:c all banned", "gone all erased", "o all over", "z eu banned"}, all)
	for _, query := range []string{"limit=0", "cursor=x", "limit=1001", "x=1"} {
		require.Equal(t, http.StatusBadRequest, m.send(http.MethodGet, query, "", bansToken).status, query)
	}
}

func TestABanThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	m := newModerated(t, 1)
	for body, parameter := range map[string]string{
		``:                             "body",
		`{"member":"u1"}`:              "body",
		`{"member":"u1","reason":" "}`: "body",
		`{"member":"","reason":"x"}`:   "body",
		`{"member":"u1","reason":"` + strings.Repeat("x", 501) + `"}`:          "body",
		`{"member":"u1","reason":"x","by":"` + strings.Repeat("x", 200) + `"}`: "body",
		`{"member":"` + strings.Repeat("x", 257) + `","reason":"x"}`:           "body",
		`{"member":"u1","reason":"x","board":""}`:                              "board",
		`{"member":"u1","reason":"x","board":"e u"}`:                           "body",
		`{"member":"u1","reason":"x","until":"tomorrow"}`:                      "until",
		`{"member":"u1","reason":"x","until":"2020-01-01T00:00:00Z"}`:          "until",
		`{"member":"u1","reason":"x","erased":true}`:                           "body",
		`{"member":"u1","reason":"x"} {}`:                                      "body",
	} {
		a := m.send(http.MethodPost, "", body, bansToken)
		require.Equal(t, http.StatusBadRequest, a.status, body)
		require.Equal(t, parameter, decode[problem](t, a.body).Parameter, body)
	}
	for _, query := range []string{"", "member=", "member=%ff", "member=u1&board=a:b", "member=u1&x=1", "member=u1&wait_ms=10001"} {
		require.Equal(t, http.StatusBadRequest, m.send(http.MethodDelete, query, "", bansToken).status, query)
	}
	require.Equal(t, http.StatusBadRequest, m.send(http.MethodPost, "wait_ms=x", `{"member":"u1","reason":"x"}`, bansToken).status)
	require.Equal(t, http.StatusRequestEntityTooLarge, m.send(http.MethodPost, "", `{"member":"`+strings.Repeat("x", longestBody)+`"}`, bansToken).status)
	require.Empty(t, m.list("").Bans)

	require.NoError(t, m.desk.Publisher.Put(t.Context(), &bans.Record{Key: bans.Key{Member: "gone"}, Reason: "x", At: time.Now(), Erased: true}))
	require.Equal(t, http.StatusConflict, m.send(http.MethodPost, "", `{"member":"gone","reason":"x"}`, bansToken).status)
	require.Equal(t, http.StatusConflict, m.send(http.MethodDelete, "member=gone", "", bansToken).status)
	require.Equal(t, "erased", m.list("").Bans[0].State)
}

// each sends one request for each operation about bans.
func (m *moderated) each(token string, do func(id string, a said)) {
	m.t.Helper()
	do("listBans", m.send(http.MethodGet, "", "", token))
	do("ban", m.send(http.MethodPost, "wait_ms=0", `{"member":"u1","reason":"x"}`, token))
	do("unban", m.send(http.MethodDelete, "member=u1&wait_ms=0", "", token))
}

func TestBansTakeATokenOfTheirOwn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, []byte("shop "+readerToken+"\n"), 0o600))
	tokens, err := OpenTokens(path)
	require.NoError(t, err)
	for _, readers := range []*Tokens{nil, tokens} {
		m := newModerated(t, 1, func(c *Config) { c.Tokens = readers })
		for _, token := range []string{"", readerToken, bansToken + "x"} {
			m.each(token, func(id string, a said) { require.Equal(t, http.StatusUnauthorized, a.status, id) })
		}
		require.Empty(t, m.list("").Bans)
		m.each(bansToken, func(id string, a said) { require.Equal(t, http.StatusOK, a.status, "%s: %s", id, a.body) })
		r := httptest.NewRequest(http.MethodGet, w("global"), nil)
		r.Header.Set("Authorization", "Bearer "+bansToken)
		if readers != nil {
			require.Equal(t, http.StatusUnauthorized, ask(t, m, r).status, "who bans isn't a reader")
		}
	}
}

func TestWhereNobodyCanBeBannedTheProblemSaysWhy(t *testing.T) {
	t.Parallel()
	for why, b := range map[string]Bans{
		"api.bans_tokens_file is not set": {},
		"api.bans_tokens_file isn't":      {Off: "api.bans_tokens_file isn't set"},
	} {
		m := newModerated(t, 1, func(c *Config) { c.Bans = b })
		m.each(bansToken, func(id string, a said) {
			require.Equal(t, http.StatusNotFound, a.status, id)
			require.Contains(t, decode[problem](t, a.body).Detail, why)
		})
	}
}

func TestBansThatCannotBeReadOrWrittenAreAProblemThatSaysNothingOfKafka(t *testing.T) {
	t.Parallel()
	m := newModerated(t, 1)
	desk := m.desk
	m.desk = nil
	m.each(bansToken, func(id string, a said) {
		require.Equal(t, http.StatusServiceUnavailable, a.status, id)
		require.Equal(t, "1", a.header.Get("Retry-After"))
	})
	m.desk = desk
	m.ban(`{"member":"u1","reason":"aimbot"}`)
	m.kafka.Timeout = 100 * time.Millisecond
	m.cluster.Close()
	m.each(bansToken, func(id string, a said) {
		if id == "listBans" { // the API still has what it read from the topic before
			require.Equal(t, http.StatusOK, a.status)
			require.Len(t, decode[bansList](t, a.body).Bans, 1)
			return
		}
		require.Contains(t, []int{http.StatusServiceUnavailable, http.StatusGatewayTimeout}, a.status, "%s: %s", id, a.body)
		require.NotContains(t, string(a.body), "127.0.0.1")
	})
	require.NotEmpty(t, m.logged.FilterMessage("couldn't answer a request").All(), "the log says why")
	m.saysNothing("aimbot", bansToken)
}

func TestAKafkaThatIsTooSlowLeavesItOpenWhetherABanIsRecorded(t *testing.T) {
	t.Parallel()
	m := newModerated(t, 1, func(c *Config) { c.Timeout = 200 * time.Millisecond })
	require.NoError(t, m.desk.Publisher.Put(t.Context(), &bans.Record{Key: bans.Key{Member: "u1"}, Reason: "x", At: time.Now()}))
	let := make(chan struct{})
	defer close(let)
	m.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		m.cluster.KeepControl()
		m.cluster.SleepControl(func() { <-let })
		return nil, nil, false
	})
	m.each(bansToken, func(id string, a said) {
		if id != "listBans" {
			require.Equal(t, http.StatusGatewayTimeout, a.status, "%s: %s", id, a.body)
			require.Contains(t, decode[problem](t, a.body).Detail, "may have been recorded")
		}
	})
}

func TestABanThatNoConsumerHasDoneYetIsRecorded(t *testing.T) {
	t.Parallel()
	m := newModerated(t, 1)
	m.desk.Standings = func(context.Context) (bans.Standings, error) { return nil, context.DeadlineExceeded }
	m.each(bansToken, func(id string, a said) {
		require.Equal(t, http.StatusOK, a.status, "%s: %s", id, a.body)
		if id != "listBans" {
			require.False(t, decode[banned](t, a.body).Done)
		}
	})
	require.Equal(t, http.StatusOK, m.send(http.MethodPost, "wait_ms=0", `{"member":"u1","reason":"x"}`, bansToken).status)
	require.Nil(t, m.list("").Bans[0].Done)
}

func TestOneWhoBansHasNoMoreRequestsAtATimeThanOthers(t *testing.T) {
	t.Parallel()
	m := newModerated(t, 1, func(c *Config) { c.Requests = 8 })
	entered, let := make(chan struct{}), make(chan struct{})
	m.desk.Standings = func(context.Context) (bans.Standings, error) {
		entered <- struct{}{}
		<-let
		return hiding.In(m.boards), nil
	}
	var held sync.WaitGroup
	held.Go(func() { m.send(http.MethodGet, "", "", bansToken) })
	<-entered
	m.each(bansToken, func(id string, a said) {
		require.Equal(t, http.StatusTooManyRequests, a.status, id)
	})
	close(let)
	held.Wait()
}
