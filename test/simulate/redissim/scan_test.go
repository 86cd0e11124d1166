package redissim

// The guarantees of a scan of a sorted set, on a real server and on the simulated one.

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/test/testenv"
)

// scanned scans a set, and changes it between the pages. It returns all members in the order of the scan.
func scanned(t require.TestingT, c *redis.Client, key string, count int64, between func()) (all []string, pages int) {
	for cursor := uint64(0); ; {
		page, next, err := c.ZScan(context.Background(), key, cursor, "", count).Result()
		require.NoError(t, err)
		pages++
		for i := 0; i < len(page); i += 2 {
			all = append(all, page[i])
		}
		if cursor = next; cursor == 0 {
			return all, pages
		}
		between()
	}
}

func added(t require.TestingT, c *redis.Client, key string, from, to int) (all []string) {
	var rows []redis.Z
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint("m", i))
		rows = append(rows, redis.Z{Score: float64(i % 7), Member: all[len(all)-1]})
	}
	require.NoError(t, c.ZAdd(context.Background(), key, rows...).Err())
	return all
}

func TestAScanReturnsWhoIsThereFromItsBeginToItsEndWhateverComesAndGoes(t *testing.T) {
	both, prefix, n := newTwins(t, 2), testenv.Prefix(t), 0
	for name, c := range map[string]*redis.Client{"simulated": both.simulated, "real": both.real} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n++
				key := fmt.Sprint(prefix, n)
				steady := added(t, c, key, 0, rapid.IntRange(1, 300).Draw(t, "members"))
				passing := 1000 + rapid.IntRange(1, 500).Draw(t, "passing")
				added(t, c, key, 1000, passing)
				grown := passing
				all, _ := scanned(t, c, key, rapid.Int64Range(20, 300).Draw(t, "count"), func() {
					switch rapid.IntRange(0, 3).Draw(t, "between") {
					case 0:
						added(t, c, key, grown, grown+100)
						grown += 100
					case 1:
						var gone []any
						for i := 1000; i < grown; i++ {
							gone = append(gone, fmt.Sprint("m", i))
						}
						require.NoError(t, c.ZRem(context.Background(), key, gone...).Err())
					}
				})
				for _, m := range steady {
					require.Contains(t, all, m)
				}
			})
		})
	}
}

func TestASimulatedScanIsInNoOrderRepeatsMembersAndMeansNothingToAnotherProcess(t *testing.T) {
	s := New(time.Now)
	c := redis.NewClient(&redis.Options{Dialer: s.Dialer("test"), MaxRetries: -1, DisableIdentity: true})
	t.Cleanup(func() { require.NoError(t, c.Close()); s.Close() })
	sorted, repeated, missed := 0, 0, 0
	id := func() string {
		text, err := c.Info(context.Background(), "server").Result()
		require.NoError(t, err)
		return text
	}
	for n := range 40 {
		key := fmt.Sprint(n)
		members := added(t, c, key, 0, 200)
		all, pages := scanned(t, c, key, 20, func() {})
		require.Greater(t, pages, 3)
		if slices.IsSorted(all) {
			sorted++
		}
		slices.Sort(all)
		if once := slices.Compact(slices.Clone(all)); len(once) < len(all) {
			repeated++
		}
		was, after := id(), 0
		all, _ = scanned(t, c, key, 20, func() {
			if after++; after == 2 {
				s.Restart()
			}
		})
		require.NotEqual(t, was, id())
		for _, m := range members {
			if !slices.Contains(all, m) {
				missed++
				break
			}
		}
	}
	require.Zero(t, sorted)
	require.Greater(t, repeated, 10)
	require.Greater(t, missed, 20)
}
