package testenv

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakes are ways of which some can be gone; the first finds a server that came by
// handed, if that is not empty.
func fakes(handed Way, here ...Way) []attempt[*server] {
	var all []attempt[*server]
	for _, way := range []Way{Given, Container, Local, Embedded} {
		all = append(all, attempt[*server]{way, func(context.Context) (*server, error) {
			s := &server{way: way, close: func() {}}
			if way == Given && handed != "" {
				s.way = handed
				return s, nil
			}
			for _, w := range here {
				if w == way {
					return s, nil
				}
			}
			return nil, fmt.Errorf("no %s: %w", way, errNotHere)
		}})
	}
	return all
}

func TestTheFirstWayThatIsAllowedAndCanBeGoneIsGone(t *testing.T) {
	for _, c := range []struct {
		demand string
		handed Way
		here   []Way
		want   Way
		says   string // of the error, where there is one
	}{
		{here: []Way{Given, Container, Local, Embedded}, want: Given},
		{here: []Way{Container, Local, Embedded}, want: Container},
		{here: []Way{Local, Embedded}, want: Local},
		{here: []Way{Embedded}, want: Embedded},
		{handed: Local, here: []Way{Container}, want: Local},

		{demand: "real", here: []Way{Local, Embedded}, want: Local},
		{demand: "real", here: []Way{Embedded}, says: "no container; no local process; STANDINGS_TEST_DEMAND=real allows nothing else"},
		{demand: "real", handed: Embedded, says: "STANDINGS_TEST_DEMAND=real, but it is embedded"},
		{demand: "environment", here: []Way{Given, Container}, want: Given},
		{demand: "environment", here: []Way{Container, Local, Embedded}, says: "no given by environment; STANDINGS_TEST_DEMAND=environment allows"},
		{demand: "containers", here: []Way{Container, Local}, want: Container},
		{demand: "containers", handed: Container, want: Container},
		{demand: "containers", here: []Way{Given, Container}, says: "STANDINGS_TEST_DEMAND=containers, but it is given by environment"},
		{demand: "containers", here: []Way{Local, Embedded}, says: "no container; "},
		{demand: "processes", here: []Way{Container, Local}, want: Local},
		{demand: "processes", here: []Way{Container, Embedded}, says: "no local process; "},
		{demand: "embedded", here: []Way{Container, Local, Embedded}, want: Embedded},
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
			require.Equal(t, c.want, s.way)
		})
	}
}

func TestAWayThatFailsIsNotPassedOver(t *testing.T) {
	broken := errors.New("Kafka doesn't start")
	ways := fakes("", Local)
	ways[1].start = func(context.Context) (*server, error) { return nil, broken }
	_, err := choose(t.Context(), ways, demands[""].shared)
	require.ErrorIs(t, err, broken)
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
		defer func() { _ = recover() }() // ended goes on where a test would have ended
		PrivateRedis(e)
	}()
	require.Equal(t, "NOT RUN: it needs a Redis of its own: STANDINGS_TEST_DEMAND=embedded allows nothing else", e.skipped)
}
