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

// readsInTurn measures all operations on a board with every member, by one client.
func (m *measurement) readsInTurn(ctx context.Context, requests, rounds int) error {
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
	serve, err := m.command(ctx, "serve", "STANDINGS_LISTEN=off", "STANDINGS_API_LISTEN="+apiAt)
	if err != nil {
		return err
	}
	c := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	board := fmt.Sprintf("%s:{0}:global:yearly:%d", m.prefix, time.Now().UTC().Year())
	ways := []way{
		func(ctx context.Context, of *read, members []string) error {
			return of.bare(ctx, m.masters[0], board, members)
		},
		func(ctx context.Context, of *read, members []string) error {
			return get(ctx, c, "http://"+apiAt+window+of.path(members), of.body(members))
		},
	}
	if err := until(ctx, func() (bool, error) { return ways[1](ctx, &reads[0], nil) == nil, nil }); err != nil { // until it is up
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "µs\tbare p50\tAPI p50\t")
	for i := range reads {
		taken := make([][]time.Duration, len(ways))
		for round := range rounds + 1 {
			for turn := range ways {
				if round%2 == 1 { // the order alternates between rounds
					turn = len(ways) - 1 - turn
				}
				one, err := m.timed(ctx, ways[turn], &reads[i], requests)
				if err != nil {
					return err
				}
				if round > 0 { // the first round opens connections and fills caches
					taken[turn] = append(taken[turn], one...)
				}
			}
		}
		fmt.Fprintf(out, "%s\t%d\t%d\t\n", reads[i].name, middle(taken[0]).Microseconds(), middle(taken[1]).Microseconds())
	}
	return errors.Join(out.Flush(), serve.stop())
}

// way is one of the two ways to read.
type way func(ctx context.Context, of *read, members []string) error

// timed sends n requests, one after the other.
func (m *measurement) timed(ctx context.Context, do way, of *read, n int) ([]time.Duration, error) {
	took, members := make([]time.Duration, n), make([]string, of.members)
	for i := range took {
		for j := range members {
			members[j] = "member-" + strconv.Itoa(rand.IntN(m.members))
		}
		sent := time.Now()
		if err := do(ctx, of, members); err != nil {
			return nil, fmt.Errorf("%s: %w", of.name, err)
		}
		took[i] = time.Since(sent)
	}
	return took, nil
}

// middle returns the median.
func middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
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
