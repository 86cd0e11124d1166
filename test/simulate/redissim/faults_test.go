package redissim

// The faults that a driver can inject into a command, as the consumer's store observes them. The tests run in a
// bubble, in which time advances only when all goroutines are blocked.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/redisconn"
)

const timeout = 5 * time.Second

// world is a server and a store on it, with a piece that is ready to be applied.
type world struct {
	server *Server
	store  *ranking.Store
	piece  ledger.Piece
	fate   atomic.Pointer[func(*Command) Answer] // applied to every command; nil executes all
}

// writes is the number of the piece's writes: the ledger twice, two boards, two listings and their expiries.
const writes = 8

// inWorld runs a test in a bubble.
func inWorld(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := New(time.Now)
		client := clientOf(s, "c1")
		w := &world{server: s, store: storeOn(t, client)}
		s.Hook = func(c *Command) Answer {
			if fate := w.fate.Load(); fate != nil {
				return (*fate)(c)
			}
			return Answer{Reply: c.Execute(Fault{}).Reply}
		}
		begun, err := w.store.Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "events"}, At: ledger.At(0)}})
		require.NoError(t, err)
		require.Equal(t, ledger.Began, begun)
		w.piece = pieceOf(t, 0, 10, "u1", "u2")
		test(t, w)
		require.NoError(t, client.Close())
		s.Close()
	})
}

func clientOf(s *Server, from string) redis.UniversalClient {
	return redisconn.NewClient(redisconn.Settings{
		Addresses: []string{"simulated:6379"}, Timeout: timeout, Network: s.Dialer(from),
		Connected: func(ctx context.Context, conn *redis.Conn) error { return redisconn.CheckEviction(ctx, conn, false) },
	})
}

func storeOn(t require.TestingT, client redis.UniversalClient) *ranking.Store {
	c := ranking.Config{Client: client, Prefix: "lb", Cluster: "c1", Timeout: timeout, Periods: map[periods.Period]ranking.Period{}}
	for _, p := range []periods.Period{periods.Weekly, periods.Monthly} {
		layout, err := codec.New(codec.Readable, p.Length(), 1000)
		require.NoError(t, err)
		c.Periods[p] = ranking.Period{Layout: layout, Retention: 60 * 24 * time.Hour}
	}
	return ranking.New(c)
}

// pieceOf returns a piece that gives each member a point in the week and the month.
func pieceOf(t require.TestingT, from, to int64, members ...string) ledger.Piece {
	var calendar periods.Calendar
	p := ledger.Piece{Partition: ledger.Partition{Topic: "events"}, Expected: ledger.At(from), Next: ledger.At(to)}
	g := ledger.Group{}
	now := time.Now().UnixMilli()
	for i, period := range []periods.Period{periods.Weekly, periods.Monthly} {
		w, err := calendar.At(period, now)
		require.NoError(t, err)
		p.Windows = append(p.Windows, ledger.Window{Board: "global", Period: string(period), Name: w.Name, Start: w.Start, End: w.End})
		g.Windows = append(g.Windows, i)
	}
	for _, m := range members {
		g.Members = append(g.Members, ledger.Member{ID: []byte(m), Points: 1, Time: now})
	}
	p.Groups = []ledger.Group{g}
	return p
}

// suffer sets the fate of all later commands.
func (w *world) suffer(fate func(*Command) Answer) {
	if fate == nil {
		w.fate.Store(nil)
		return
	}
	w.fate.Store(&fate)
}

// apply sends the piece while every command has this fate.
func (w *world) apply(t *testing.T, fate func(*Command) Answer) (ledger.Answer, error) {
	t.Helper()
	w.suffer(fate)
	defer w.suffer(nil)
	a, _, err := w.store.Apply(t.Context(), &w.piece)
	return a, err
}

// onApply gives the first call of apply.lua a fate, and executes everything else.
func onApply(fate func(*Command) Answer) func(*Command) Answer {
	done := false
	return func(c *Command) Answer {
		if c.Name() != "apply.lua" || done {
			return Answer{Reply: c.Execute(Fault{}).Reply}
		}
		done = true
		return fate(c)
	}
}

func TestAConsumerSeesAnOrdinaryRedis(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.NoError(t, w.store.Try(t.Context(), false))
		require.NoError(t, w.store.TryCommands(t.Context()))
		a, err := w.apply(t, nil)
		require.NoError(t, err)
		require.Equal(t, ledger.Answer{Outcome: ledger.Applied}, a)
		require.Contains(t, w.server.Dump(), `"events/0"="10"`)
		require.Equal(t, []string{
			"lb:{0}:global:monthly:2000-01", "lb:{0}:global:weekly:1999-W52", "lb:{0}:ledger", "lb:{0}:schema", "lb:{0}:windows",
		}, w.server.Keys())
		st, err := w.store.State(t.Context())
		require.NoError(t, err)
		require.Equal(t, time.Now().UnixMilli(), st.Now.UnixMilli(), "by the world's clock")
	})
}

func TestALateCallIsExecutedAfterItsClientHasGivenUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		release, executed := make(chan struct{}), make(chan Result, 1)
		a, err := w.apply(t, onApply(func(c *Command) Answer {
			<-release
			r := c.Execute(Fault{})
			executed <- r
			return Answer{Reply: r.Reply}
		}))
		require.Error(t, err)
		require.True(t, redisconn.Unreachable(err), "%v", err)
		require.Zero(t, a)
		require.Contains(t, w.server.Dump(), `"events/0"="0"`)
		close(release)
		require.Equal(t, writes, (<-executed).Writes)
		require.Contains(t, w.server.Dump(), `"events/0"="10"`)
		// Sent again, the piece is found to be applied.
		a, err = w.apply(t, nil)
		require.NoError(t, err)
		require.Equal(t, ledger.Applied, a.Outcome)
		require.Equal(t, int64(1), w.points(t, "u1"))
	})
}

// points returns a member's points in the month.
func (w *world) points(t *testing.T, member string) int64 {
	t.Helper()
	score, err := strconv.ParseFloat(fmt.Sprint(w.server.Do("ZSCORE", "lb:{0}:global:monthly:2000-01", member)), 64)
	require.NoError(t, err)
	return int64(score)
}

func TestAnAnswerIsLostOrItsConnectionIsCut(t *testing.T) {
	for _, answer := range []Answer{{Lost: true}, {Cut: true}} {
		t.Run(fmt.Sprint(answer), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				began := time.Now()
				_, err := w.apply(t, onApply(func(c *Command) Answer {
					c.Execute(Fault{})
					return answer
				}))
				require.True(t, redisconn.Unreachable(err), "%v", err)
				if answer.Lost {
					require.Equal(t, timeout, time.Since(began))
				}
				a, err := w.apply(t, nil)
				require.NoError(t, err)
				require.Equal(t, ledger.Applied, a.Outcome)
				require.Equal(t, int64(1), w.points(t, "u1"))
			})
		})
	}
}

func TestAServerInTroubleAnswersAndWritesNothing(t *testing.T) {
	for _, f := range []Fault{
		{Refuse: Loading}, {Refuse: Busy}, {Refuse: MasterDown},
		{Write: OutOfMemory}, {Write: ReadOnly}, {Write: Misconf}, {Write: NoReplicas},
	} {
		t.Run(f.Refuse+f.Write, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				before := w.server.Dump()
				fate := onApply(func(c *Command) Answer {
					r := c.Execute(f)
					require.True(t, r.Struck)
					require.Zero(t, r.Writes)
					return Answer{Reply: r.Reply}
				})
				_, err := w.apply(t, fate)
				require.ErrorContains(t, err, f.Refuse+f.Write)
				require.Equal(t, ledger.Retry, ranking.Classify(err))
				require.Equal(t, before, w.server.Dump())
				a, err := w.apply(t, nil)
				require.NoError(t, err)
				require.Equal(t, ledger.Applied, a.Outcome)
			})
		})
	}
}

func TestWhatReadsGoesThroughWhereWritesAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.piece.Expected = ledger.At(7)
		a, err := w.apply(t, onApply(func(c *Command) Answer {
			r := c.Execute(Fault{Write: OutOfMemory})
			require.False(t, r.Struck)
			return Answer{Reply: r.Reply}
		}))
		require.NoError(t, err)
		require.Equal(t, ledger.Answer{Outcome: ledger.Moved, Found: "0"}, a)
	})
}

func TestAScriptDiesAtAnyOfItsWritesAndKeepsWhatItWrote(t *testing.T) {
	for at := 1; at <= writes+1; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				before := w.server.Dump()
				var r Result
				a, err := w.apply(t, onApply(func(c *Command) Answer {
					r = c.Execute(Fault{DieAt: at})
					return Answer{Reply: r.Reply}
				}))
				switch {
				case at > writes:
					require.NoError(t, err)
					require.Equal(t, ledger.Applied, a.Outcome)
					require.False(t, r.Struck)
					return
				case at == 1:
					require.Equal(t, before, w.server.Dump())
					require.False(t, r.Torn())
				default:
					require.Contains(t, w.server.Dump(), `"events/0"="torn:0"`)
					require.True(t, r.Torn())
				}
				require.True(t, r.Struck)
				require.Equal(t, at-1, r.Writes)
				rights, is := errors.AsType[*redisconn.RightsError](err)
				require.True(t, is, "%v", err)
				require.Contains(t, []string{"HSET", "ZADD", "PEXPIREAT"}, rights.Command)
				require.Equal(t, ledger.Halt, ranking.Classify(err))
			})
		})
	}
}

// swap runs a rebuild in which a shadow of both partitions replaces the live boards, while every command has
// this fate.
func (w *world) swap(t *testing.T, fate func(*Command) Answer) error {
	t.Helper()
	r, err := shadow.Lock(t.Context(), w.store, "me", time.Minute)
	require.NoError(t, err)
	begun, err := r.Shadow().Begin(t.Context(), []ledger.StartPosition{
		{Partition: ledger.Partition{Topic: "events"}, At: ledger.At(0), Origin: &ledger.Origin{}},
		{Partition: ledger.Partition{Topic: "events", Number: 1}, At: ledger.At(5), Origin: &ledger.Origin{}},
	})
	require.NoError(t, err)
	require.Equal(t, ledger.Began, begun)
	p := pieceOf(t, 0, 10, "u1")
	a, _, err := r.Shadow().Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Applied, a.Outcome)
	require.NoError(t, r.Hold(t.Context(), time.Minute))
	w.suffer(fate)
	_, err = r.Swap(t.Context(), shadow.Choice{})
	w.suffer(nil)
	require.NoError(t, r.Close(t.Context()))
	return err
}

// If a part of the ledger came back, the missing partitions would look as if they had been added
// since.
func TestASwapOfALostLedgerThatDiesAtAnyOfItsWritesLeavesNoneOrAllOfItAndAnotherSettlesIt(t *testing.T) {
	struck := true
	for at := 1; struck; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				_, err := w.apply(t, nil)
				require.NoError(t, err)
				w.server.Do("DEL", "lb:{0}:ledger", "lb:{0}:schema")
				struck = false
				err = w.swap(t, func(c *Command) Answer {
					if c.Name() != "swap.lua" {
						return Answer{Reply: c.Execute(Fault{}).Reply}
					}
					r := c.Execute(Fault{DieAt: at})
					struck = r.Struck
					return Answer{Reply: r.Reply}
				})
				if !struck {
					require.NoError(t, err)
					require.Greater(t, at, 10)
					return
				}
				require.Error(t, err)
				state, err := w.store.State(t.Context())
				require.NoError(t, err)
				if len(state.Ledger) > 0 {
					require.Len(t, state.Ledger, 2)
					require.NotEmpty(t, state.Schema)
				}
				require.NoError(t, w.swap(t, nil))
				state, err = w.store.State(t.Context())
				require.NoError(t, err)
				require.Equal(t, map[string]string{"events/0": "10", "events/1": "5"}, state.Ledger)
				require.Equal(t, int64(1), w.points(t, "u1"))
			})
		})
	}
}

func TestARollbackBringsBackAllThatThereWas(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var snapshots []Snapshot
		var dumps []string
		keep := func() {
			snapshots = append(snapshots, w.server.Snapshot())
			dumps = append(dumps, w.server.Dump())
		}
		keep()
		for i := range int64(5) {
			w.piece = pieceOf(t, 10*i, 10*i+10, "u1", fmt.Sprint("u", i))
			a, err := w.apply(t, nil)
			require.NoError(t, err)
			require.Equal(t, ledger.Applied, a.Outcome)
			keep()
		}
		for _, i := range []int{3, 0, 5, 1, 1} {
			w.server.Restore(snapshots[i])
			require.Equal(t, dumps[i], w.server.Dump())
			// Later writes leave all snapshots unchanged.
			w.piece = pieceOf(t, int64(10*i), int64(10*i+10), "u1")
			a, err := w.apply(t, nil)
			require.NoError(t, err)
			require.Equal(t, ledger.Applied, a.Outcome)
			require.NotEqual(t, dumps[i], w.server.Dump())
		}
		w.server.Wipe()
		require.Empty(t, w.server.Keys())
	})
}

func TestAnEvictedKeyIsGoneAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, err := w.apply(t, nil)
		require.NoError(t, err)
		require.True(t, w.server.Evict("lb:{0}:global:monthly:2000-01"))
		require.False(t, w.server.Evict("lb:{0}:global:monthly:2000-01"))
		w.piece = pieceOf(t, 10, 20, "u1")
		a, err := w.apply(t, nil)
		require.NoError(t, err)
		require.Equal(t, ledger.Answer{Outcome: ledger.Lost, Window: "global:monthly:2000-01"}, a)
	})
}

func TestAHoldLapsesByTheWorldsClock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.Equal(t, ok, w.server.Do("SET", "lb:{0}:hold", "token", "PX", "2000", "NX"))
		require.Nil(t, w.server.Do("SET", "lb:{0}:hold", "other", "PX", "2000", "NX"))
		a, err := w.apply(t, nil)
		require.NoError(t, err)
		require.Equal(t, ledger.Held, a.Outcome)
		time.Sleep(1999 * time.Millisecond)
		a, err = w.apply(t, nil)
		require.NoError(t, err)
		require.Equal(t, ledger.Held, a.Outcome)
		time.Sleep(time.Millisecond)
		a, err = w.apply(t, nil)
		require.NoError(t, err)
		require.Equal(t, ledger.Applied, a.Outcome)
	})
}

func TestFlushedScriptsAreAskedForAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.Positive(t, w.server.FlushScripts())
		var seen []string
		w.suffer(func(c *Command) Answer {
			reply := c.Execute(Fault{}).Reply
			seen = append(seen, fmt.Sprint(c.Name(), " ", strings.HasPrefix(fmt.Sprint(reply), "NOSCRIPT")))
			return Answer{Reply: reply}
		})
		_, err := w.store.State(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"EVALSHA true", "state.lua false"}, seen)
	})
}

func TestAScriptIsRunAsItIsRewritten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.FlushScripts()
		w.server.Rewrite = func(source string) string {
			if strings.HasPrefix(source, "-- apply.lua ") {
				return "return {'moved', 'elsewhere'}"
			}
			return source
		}
		a, err := w.apply(t, nil)
		require.NoError(t, err)
		require.Equal(t, ledger.Answer{Outcome: ledger.Moved, Found: "elsewhere"}, a)
		require.Contains(t, w.server.Dump(), `"events/0"="0"`)
	})
}

func TestAServerThatIsAwayLetsNobodyIn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.Refuse = func(from string) error {
			require.Equal(t, "c1", from)
			return &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		require.Equal(t, 1, w.server.Cut("c1"))
		require.Zero(t, w.server.Cut("c2"))
		synctest.Wait()
		_, err := w.apply(t, nil) // on the connection that was cut
		require.True(t, redisconn.Unreachable(err), "%v", err)
		_, err = w.apply(t, nil)
		require.True(t, redisconn.Unreachable(err), "%v", err)
		w.server.Refuse = nil
		_, err = w.apply(t, nil)
		require.NoError(t, err)
	})
}

// The cost of a call limits the size of a simulation.
func BenchmarkApply(b *testing.B) {
	s := New(time.Now)
	client := clientOf(s, "bench")
	store := storeOn(b, client)
	_, err := store.Begin(b.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "events"}, At: ledger.At(0)}})
	require.NoError(b, err)
	from := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		p := pieceOf(b, from, from+1, "u1", "u2", "u3", "u4")
		p.Groups[0].Members[0].Points = 1 - 2*(from%2)
		for i := range p.Groups[0].Members {
			p.Groups[0].Members[i].Points = 1 - 2*(from%2)
		}
		a, _, err := store.Apply(b.Context(), &p)
		if err != nil || a.Outcome != ledger.Applied {
			b.Fatal(a, err)
		}
		from++
	}
	require.NoError(b, client.Close())
	s.Close()
}
