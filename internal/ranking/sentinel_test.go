package ranking

import (
	"testing"
	"time"

	fake "github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
)

// forgetful starts a Sentinel that watches no master, like one that was restarted without its state.
func forgetful(t *testing.T) string {
	t.Helper()
	s, err := fake.NewServer("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	for name, answer := range map[string]func(*fake.Peer){
		"CLIENT": func(c *fake.Peer) { c.WriteOK() }, "SENTINEL": func(c *fake.Peer) { c.WriteNull() },
	} {
		require.NoError(t, s.Register(name, func(c *fake.Peer, _ string, _ []string) { answer(c) }))
	}
	return s.Addr().String()
}

// A Sentinel answers nil for an unknown master. If the client took that for the master's answer, a
// partition would seem to have no position and would start again.
func TestASentinelThatKnowsNoMasterIsNoAnswerOfTheMaster(t *testing.T) {
	dial := redisconn.Settings{Addresses: []string{forgetful(t)}, Master: "points", Timeout: 5 * time.Second}
	client := redisconn.NewClient(dial)
	defer func() { require.NoError(t, client.Close()) }()
	store := offlineFixture(t).storeOf(t, func(c *Config) { c.Client = client })

	_, err := store.Position(t.Context(), ledger.Partition{Topic: "events", Number: 3})
	named := ""
	if of > 1 {
		named = "shard 3 of 5: "
	}
	require.ErrorContains(t, err, "read the position of events/3: "+named+"no master by the Sentinels: ")
	require.Equal(t, ledger.Retry, Classify(err), "while it runs, a Sentinel may learn of it yet")
	require.True(t, redisconn.Unreachable(err))
	require.Equal(t, ledger.Retry, Classify(err).AtStart())

	err = dial.Explain(t.Context(), err)
	require.EqualError(t, err, "Sentinel "+dial.Addresses[0]+` watches no master named "points": see redis.sentinel.master`)
	require.Equal(t, ledger.Refuse, Classify(err).AtStart())
}
