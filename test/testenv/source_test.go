package testenv

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakes returns attempts of which only those for the sources in here succeed. If handed is not empty, the
// first one returns a server with that source.
func fakes(handed Source, here ...Source) []attempt[*server] {
	var all []attempt[*server]
	for _, source := range []Source{Given, Container, Local, Embedded} {
		all = append(all, attempt[*server]{source, func(context.Context) (*server, error) {
			s := &server{source: source, close: func() {}}
			if source == Given && handed != "" {
				s.source = handed
				return s, nil
			}
			for _, w := range here {
				if w == source {
					return s, nil
				}
			}
			return nil, fmt.Errorf("no %s: %w", source, errNotHere)
		}})
	}
	return all
}

func TestTheFirstWayThatIsAllowedAndCanBeGoneIsGone(t *testing.T) {
	for _, c := range []struct {
		demand string
		handed Source
		here   []Source
		want   Source
		says   string // expected text of the error, or ""
	}{
		{here: []Source{Given, Container, Local, Embedded}, want: Given},
		{here: []Source{Container, Local, Embedded}, want: Container},
		{here: []Source{Local, Embedded}, want: Local},
		{here: []Source{Embedded}, want: Embedded},
		{handed: Local, here: []Source{Container}, want: Local},

		{demand: "real", here: []Source{Local, Embedded}, want: Local},
		{demand: "real", here: []Source{Embedded}, says: "no container; no local process; STANDINGS_TEST_DEMAND=real allows nothing else"},
		{demand: "real", handed: Embedded, says: "STANDINGS_TEST_DEMAND=real, but it is embedded"},
		{demand: "environment", here: []Source{Given, Container}, want: Given},
		{demand: "environment", here: []Source{Container, Local, Embedded}, says: "no given by environment; STANDINGS_TEST_DEMAND=environment allows"},
		{demand: "containers", here: []Source{Container, Local}, want: Container},
		{demand: "containers", handed: Container, want: Container},
		{demand: "containers", here: []Source{Given, Container}, says: "STANDINGS_TEST_DEMAND=containers, but it is given by environment"},
		{demand: "containers", here: []Source{Local, Embedded}, says: "no container; "},
		{demand: "processes", here: []Source{Container, Local}, want: Local},
		{demand: "processes", here: []Source{Container, Embedded}, says: "no local process; "},
		{demand: "embedded", here: []Source{Container, Local, Embedded}, want: Embedded},
		{demand: "embedded", handed: Embedded, want: Embedded},
		{demand: "embedded", handed: Container, says: "STANDINGS_TEST_DEMAND=embedded, but it is container"},
	} {
		t.Run(fmt.Sprintf("%s with %s%v", c.demand, c.handed, c.here), func(t *testing.T) {
			t.Setenv(DemandVariable, c.demand)
			d, err := demanded()
			require.NoError(t, err)
			s, err := choose(t.Context(), fakes(c.handed, c.here...), d.shared)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, s.source)
		})
	}
}

func TestAWayThatFailsIsNotPassedOver(t *testing.T) {
	broken := errors.New("Kafka doesn't start")
	attempts := fakes("", Local)
	attempts[1].start = func(context.Context) (*server, error) { return nil, broken }
	_, err := choose(t.Context(), attempts, demands[""].shared)
	require.ErrorIs(t, err, broken)
}

func TestWhatWasNamedComesBeforeWhatWasNot(t *testing.T) {
	t.Setenv(DemandVariable, "")
	t.Setenv(RedisImageVariable, "")
	t.Setenv(RedisServerVariable, "valkey-server")
	_, err := redisImage()
	require.ErrorIs(t, err, errNotHere)
	require.EqualError(t, err, "STANDINGS_TEST_REDIS_SERVER is set, and STANDINGS_TEST_REDIS_IMAGE isn't: not on this machine")

	t.Setenv(RedisServerVariable, "")
	t.Setenv(RedisImageVariable, "valkey/valkey:8")
	require.ErrorIs(t, quickRedis(), errNotHere, "an image that was named comes before any program")
	t.Setenv(RedisServerVariable, "valkey-server")
	require.NotErrorIs(t, quickRedis(), errNotHere)
}

func TestADemandThatDoesNotExistIsAFailure(t *testing.T) {
	t.Setenv(DemandVariable, "container")
	_, err := startKafka(t.Context())
	require.EqualError(t, err, "STANDINGS_TEST_DEMAND=container: it is one of containers, embedded, environment, processes, real")
}

func TestAServerOfATestsOwnIsNotRunWhereOnlyEmbeddedOnesAreAllowed(t *testing.T) {
	t.Setenv(DemandVariable, "embedded")
	t.Setenv(NotRunVariable, "")
	e := &ended{TB: t}
	func() {
		defer func() { _ = recover() }() // ended continues where a real test would have ended
		PrivateRedis(e)
	}()
	require.Equal(t, "NOT RUN: it needs a Redis of its own: STANDINGS_TEST_DEMAND=embedded allows nothing else", e.skipped)
}
