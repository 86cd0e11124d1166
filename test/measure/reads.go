package main

// The cost of reads: the API of consumer serve, compared with the minimal commands for each read on bare Redis. The
// two alternate, so that other load on the machine affects both.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
)

// read is an operation: its minimal Redis commands, and its API request.
type read struct {
	name    string
	members int // number of members that it reads
	bare    func(ctx context.Context, r *redis.Client, board string, members []string) error
	path    func(members []string) string // below the path of the window
	lookup  bool                          // the request's body has the members
}

var reads = []read{
	{name: "top 10", bare: bareTop(10), path: func([]string) string { return "/standings?limit=10" }},
	{name: "top 100", bare: bareTop(100), path: func([]string) string { return "/standings?limit=100" }},
	{name: "rank", members: 1, bare: bareRanks, path: func(m []string) string { return "/members/" + m[0] }},
	{name: "around", members: 1, bare: bareAround, path: func(m []string) string { return "/around?absent=top&n=5&member=" + m[0] }},
	{name: "lookup of 50", members: 50, bare: bareRanks, path: func([]string) string { return "/members/lookup" }, lookup: true},
}

func bareTop(n int64) func(context.Context, *redis.Client, string, []string) error {
	return func(ctx context.Context, r *redis.Client, board string, _ []string) error {
		return r.ZRevRangeWithScores(ctx, board, 0, n-1).Err()
	}
}

// bareRanks reads the score and the rank of each member, in one round trip.
func bareRanks(ctx context.Context, r *redis.Client, board string, members []string) error {
	_, err := r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, m := range members {
			pipe.ZScore(ctx, board, m)
			pipe.ZRevRank(ctx, board, m)
		}
		return nil
	})
	return err
}

// bareAround needs two round trips, since the range depends on the rank.
func bareAround(ctx context.Context, r *redis.Client, board string, members []string) error {
	rank, err := r.ZRevRank(ctx, board, members[0]).Result()
	if err != nil {
		return err
	}
	return r.ZRevRangeWithScores(ctx, board, max(0, rank-5), rank+5).Err()
}

// window is the path of the window that is read.
const window = "/v1/boards/global/periods/yearly/windows/current"

// way is one of the two ways to read.
type way struct {
	do  func(ctx context.Context, of *read, members []string) error
	cpu func() float64 // of the server other than Redis
}

// taken has the figures of a way, for an operation and a number of clients.
type taken struct {
	took    []time.Duration // per request
	seconds float64         // elapsed
	redis   float64         // seconds of processor time, like server
	server  float64
}

// readsInTurn measures all operations on a board with every member: with one client, and with several at once.
func (m *measurement) readsInTurn(ctx context.Context, clients, requests, rounds int) error {
	if err := m.everyMember(ctx); err != nil {
		return err
	}
	counting, err := m.start(ctx)
	if err != nil {
		return err
	}
	if err := m.caughtUp(ctx); err != nil {
		return err
	}
	if err := counting.stop(); err != nil {
		return err
	}
	apiAt, _, err := freePorts(ctx)
	if err != nil {
		return err
	}
	serve, err := m.command(ctx, "serve", "STANDINGS_LISTEN=off", "STANDINGS_API_LISTEN="+apiAt, "STANDINGS_API_REQUESTS="+strconv.Itoa(4*clients))
	if err != nil {
		return err
	}
	bare := redis.NewClient(&redis.Options{Addr: m.masters[0].Options().Addr, PoolSize: clients})
	defer bare.Close() //nolint:errcheck // the process ends
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}}
	board := fmt.Sprintf("%s:{0}:global:yearly:%d", m.prefix, time.Now().UTC().Year())
	ways := []way{
		{func(ctx context.Context, of *read, members []string) error { return of.bare(ctx, bare, board, members) }, func() float64 { return 0 }},
		{func(ctx context.Context, of *read, members []string) error {
			return get(ctx, c, "http://"+apiAt+window+of.path(members), of.body(members))
		}, serve.usage},
	}
	if err := until(ctx, func() (bool, error) { return ways[1].do(ctx, &reads[0], nil) == nil, nil }); err != nil { // until it is up
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "µs\tclients\tbare p50\tp99\t/s\tRedis\tAPI p50\tp99\t/s\tRedis\tserver\t")
	for _, at := range slices.Compact([]int{1, clients}) {
		for i := range reads {
			all := make([]taken, len(ways))
			for round := range rounds + 1 {
				for turn := range ways {
					if round%2 == 1 { // the order alternates between rounds
						turn = len(ways) - 1 - turn
					}
					one, err := m.timed(ctx, ways[turn], &reads[i], requests, at)
					if err != nil {
						return err
					}
					if round > 0 { // the first round opens connections and fills caches
						all[turn].add(one)
					}
				}
			}
			fmt.Fprintf(out, "%s\t%d\t%s%s%.0f\t\n", reads[i].name, at, &all[0], &all[1], 1e6*all[1].server/float64(len(all[1].took)))
		}
	}
	return errors.Join(out.Flush(), serve.stop())
}

// String returns the part of a table's line that both ways have.
func (t *taken) String() string {
	n := float64(len(t.took))
	us := func(percent int) float64 { return float64(quantile(t.took, percent).Nanoseconds()) / 1e3 }
	return fmt.Sprintf("%.0f\t%.0f\t%.0f\t%.0f\t", us(50), us(99), n/t.seconds, 1e6*t.redis/n)
}

// body returns the body of the request, nil if it has none.
func (r *read) body(members []string) []byte {
	if !r.lookup {
		return nil
	}
	text, err := json.Marshal(map[string][]string{"members": members})
	if err != nil {
		panic(err) // only strings
	}
	return text
}

// get sends a request, as a POST if it has a body, and reads the answer, whose status must be 200.
func get(ctx context.Context, c *http.Client, url string, body []byte) error {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(string(body)))
	if err != nil {
		return fmt.Errorf("read the API: %w", err)
	}
	got, err := c.Do(r)
	if err != nil {
		return fmt.Errorf("read the API: %w", err)
	}
	_, err = io.Copy(io.Discard, got.Body)
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d", url, got.StatusCode)
	}
	return errors.Join(err, got.Body.Close())
}

// timed sends n requests with several clients at once. A client sends its next request after the answer.
func (m *measurement) timed(ctx context.Context, w way, of *read, n, clients int) (taken, error) {
	redisBefore, err := m.redisCPU(ctx)
	if err != nil {
		return taken{}, err
	}
	each, errs := make([][]time.Duration, clients), make([]error, clients)
	serverBefore, began := w.cpu(), time.Now()
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			members := make([]string, of.members)
			for range n / clients {
				for i := range members {
					members[i] = "member-" + strconv.Itoa(rand.IntN(m.members))
				}
				sent := time.Now()
				if errs[client] = w.do(ctx, of, members); errs[client] != nil {
					return
				}
				each[client] = append(each[client], time.Since(sent))
			}
		})
	}
	all.Wait()
	t := taken{seconds: time.Since(began).Seconds(), server: w.cpu() - serverBefore, took: slices.Concat(each...)}
	if err := errors.Join(errs...); err != nil {
		return taken{}, fmt.Errorf("%s: %w", of.name, err)
	}
	redisAfter, err := m.redisCPU(ctx)
	t.redis = redisAfter - redisBefore
	return t, err
}

// add adds the figures of a round.
func (t *taken) add(o taken) {
	t.took = append(t.took, o.took...)
	slices.Sort(t.took)
	t.seconds += o.seconds
	t.redis += o.redis
	t.server += o.server
}

// quantile returns the given percentile of sorted values.
func quantile(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}
