package main

// What reads cost over bare Redis. Of each operation five ways take turns, so that whatever else
// the machine does meets all of them: the commands that it needs at least, by go-redis; those with
// what every answer of the API says of itself, by a transaction; an HTTP handler that does nothing,
// in a process of its own; one that sends the least commands, and no more; and the API of consumer serve.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/api"
)

// read is an operation: what it takes of Redis at least, and the request that it is.
type read struct {
	name    string
	members int // how many it is about
	bare    bareRead
	path    func(members []string) string // under the window's
	lookup  bool                          // the members go in the body
}

// bareRead sends what an operation takes of Redis at least, with other commands beside it.
type bareRead func(ctx context.Context, r redis.UniversalClient, board string, members []string, with func(redis.Pipeliner)) error

var reads = []read{
	{name: "top 10", bare: bareTop(10), path: func([]string) string { return "/standings?limit=10" }},
	{name: "top 100", bare: bareTop(100), path: func([]string) string { return "/standings?limit=100" }},
	{name: "rank", members: 1, bare: bareRanks, path: func(m []string) string { return "/members/" + m[0] }},
	{name: "around", members: 1, bare: bareAround, path: func(m []string) string { return "/around?absent=top&n=5&member=" + m[0] }},
	{name: "lookup of 50", members: 50, bare: bareRanks, path: func([]string) string { return "/members/lookup" }, lookup: true},
}

// sent sends commands in one round trip; with others before them as a transaction, of one instant.
func sent(ctx context.Context, r redis.UniversalClient, with func(redis.Pipeliner), do func(redis.Pipeliner)) error {
	pipe := r.Pipeline()
	if with != nil {
		pipe = r.TxPipeline()
		with(pipe)
	}
	do(pipe)
	_, err := pipe.Exec(ctx)
	return err
}

func bareTop(n int64) bareRead {
	return func(ctx context.Context, r redis.UniversalClient, board string, _ []string, with func(redis.Pipeliner)) error {
		var rows *redis.ZSliceCmd
		err := sent(ctx, r, with, func(pipe redis.Pipeliner) { rows = pipe.ZRevRangeWithScores(ctx, board, 0, n-1) })
		if err == nil && int64(len(rows.Val())) != n {
			err = fmt.Errorf("%d rows of %d", len(rows.Val()), n)
		}
		return err
	}
}

// bareRanks is the score and the rank of each, in one round trip.
func bareRanks(ctx context.Context, r redis.UniversalClient, board string, members []string, with func(redis.Pipeliner)) error {
	return sent(ctx, r, with, func(pipe redis.Pipeliner) {
		for _, m := range members {
			pipe.ZScore(ctx, board, m)
			pipe.ZRevRank(ctx, board, m)
		}
	})
}

// bareAround is two round trips: where the rows are depends on the rank.
func bareAround(ctx context.Context, r redis.UniversalClient, board string, members []string, with func(redis.Pipeliner)) error {
	rank, err := r.ZRevRank(ctx, board, members[0]).Result()
	if err != nil {
		return err
	}
	return sent(ctx, r, with, func(pipe redis.Pipeliner) { pipe.ZRevRangeWithScores(ctx, board, max(0, rank-5), rank+5) })
}

// window is the path of the one that is read.
const window = "/v1/boards/global/periods/yearly/windows/current"

// way is one of the five.
type way struct {
	name string
	do   func(ctx context.Context, of *read, members []string) error
	cpu  func() float64 // of the process that answers, besides Redis
}

// taken are the figures of a way, of an operation and a number of clients.
type taken struct {
	took     []time.Duration // of each request
	medians  []time.Duration // of each round
	seconds  float64         // of the wall
	redis    float64         // seconds of processor time, as is server
	server   float64
	requests int
}

// readsInTurn measures all operations on a board of so many members: by one client, and by some at
// a time.
func (m *measurement) readsInTurn(ctx context.Context, clients, requests, rounds int, rtt time.Duration, asJSON bool) error {
	began := time.Now()
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
	fmt.Fprintf(os.Stderr, "%d members are counted, in %.0f s\n", m.members, time.Since(began).Seconds())
	ways, stop, err := m.ways(ctx, clients, rtt)
	defer stop()
	if err != nil {
		return err
	}
	lines := []line{}
	for _, at := range slices.Compact([]int{1, clients}) {
		for i := range reads {
			all := make([]taken, len(ways))
			for round := range rounds + 1 {
				for turn := range ways {
					if round%2 == 1 { // what comes first in one round comes last in the next
						turn = len(ways) - 1 - turn
					}
					if round == 0 { // connections are dialed, and caches filled
						if _, err := m.timed(ctx, ways[turn], &reads[i], max(at, requests/10), at); err != nil {
							return err
						}
						continue
					}
					one, err := m.timed(ctx, ways[turn], &reads[i], requests, at)
					if err != nil {
						return err
					}
					all[turn].add(one)
				}
			}
			lines = append(lines, newLine(reads[i].name, at, ways, all))
		}
	}
	if asJSON {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(map[string]any{"members": m.members, "rounds": rounds, "requests": requests, "reads": lines})
	}
	return tableOfReads(lines)
}

// ways starts the servers of the ways, and a slower one to Redis. Stop is to be called in any case.
func (m *measurement) ways(ctx context.Context, clients int, rtt time.Duration) (all []way, stop func(), err error) {
	var servers []*process
	stop = func() {
		for _, p := range servers {
			_ = p.stop() // what they were for is through
		}
	}
	apiAt, emptyAt, err := freePorts(ctx)
	if err != nil {
		return nil, stop, err
	}
	hopAt, linkAt, err := freePorts(ctx)
	if err != nil {
		return nil, stop, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, stop, fmt.Errorf("find this program: %w", err)
	}
	redisAt, board := m.masters[0].Options().Addr, fmt.Sprintf("%s:{0}:global:yearly:%d", m.prefix, time.Now().UTC().Year())
	helpers := [][]string{{"-listen", emptyAt, "empty"}, {"-listen", hopAt, "-to", redisAt, "-board", board, "bare"}}
	if rtt > 0 {
		helpers[1][3] = linkAt
		helpers = append([][]string{{"-listen", linkAt, "-to", redisAt, "-rtt", rtt.String(), "link"}}, helpers...)
		redisAt = linkAt
	}
	for _, args := range helpers {
		helper, err := started(ctx, self, args, os.Environ())
		if err != nil {
			return nil, stop, err
		}
		servers = append(servers, helper)
	}
	empty, hop := servers[len(servers)-2], servers[len(servers)-1]
	serve, err := m.command(ctx, "serve", "STANDINGS_REDIS_ADDRESSES="+redisAt, "STANDINGS_LISTEN=off", "STANDINGS_API_LISTEN="+apiAt, "STANDINGS_API_REQUESTS="+strconv.Itoa(4*clients))
	if err != nil {
		return nil, stop, err
	}
	servers = append(servers, serve)
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}}
	for _, address := range []string{emptyAt, hopAt, apiAt} {
		if err := until(ctx, func() (bool, error) {
			return get(ctx, c, "http://"+address+window, nil) == nil, nil // it isn't up yet
		}); err != nil {
			return nil, stop, err
		}
	}
	// The board's own connections, so that none is shared with what else is asked.
	bare := redis.NewClient(&redis.Options{Addr: redisAt, PoolSize: clients})
	stopServers := stop
	stop = func() {
		stopServers()
		_ = bare.Close()
	}
	request := func(address string) func(context.Context, *read, []string) error {
		return func(ctx context.Context, of *read, members []string) error {
			return get(ctx, c, "http://"+address+window+of.path(members), of.body(members))
		}
	}
	return []way{
		{"bare", func(ctx context.Context, of *read, members []string) error {
			return of.bare(ctx, bare, board, members, nil)
		}, func() float64 { return 0 }},
		{"trusted", func(ctx context.Context, of *read, members []string) error {
			return of.bare(ctx, bare, board, members, func(pipe redis.Pipeliner) { beside(ctx, pipe, m.prefix, board) })
		}, func() float64 { return 0 }},
		{"empty", request(emptyAt), empty.usage},
		{"hop", request(hopAt), hop.usage},
		{"API", request(apiAt), serve.usage},
	}, stop, nil
}

// beside are the commands for what every answer of the API says of itself: as of when and by which
// ledger it is true, and whether that is all there is.
func beside(ctx context.Context, pipe redis.Pipeliner, prefix, board string) {
	of := prefix + ":{0}:"
	pipe.Time(ctx)
	pipe.Get(ctx, of+"schema")
	pipe.HGet(ctx, of+"windows", strings.TrimPrefix(board, of))
	pipe.ZCard(ctx, board)
	for _, hash := range []string{"origin", "ledger", "workers"} {
		pipe.HGetAll(ctx, of+hash)
	}
}

// body is that of the request; nil for none.
func (r *read) body(members []string) []byte {
	if !r.lookup {
		return nil
	}
	text, err := json.Marshal(map[string][]string{"members": members})
	if err != nil {
		panic(err) // of strings
	}
	return text
}

// get sends a request, with a body a POST, and reads the answer, which has to be 200.
func get(ctx context.Context, c *http.Client, url string, body []byte) error {
	status, err := answer(ctx, c, url, body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s: status %d", url, status)
	}
	return err
}

// answer is the status of a request's answer, which is read.
func answer(ctx context.Context, c *http.Client, url string, body []byte) (int, error) {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(string(body)))
	if err != nil {
		return 0, fmt.Errorf("read the API: %w", err)
	}
	got, err := c.Do(r)
	if err != nil {
		return 0, fmt.Errorf("read the API: %w", err)
	}
	_, err = io.Copy(io.Discard, got.Body)
	return got.StatusCode, errors.Join(err, got.Body.Close())
}

// timed does n requests, by so many clients at a time: each sends its next once it has the answer.
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
	t.requests = len(t.took)
	slices.Sort(t.took)
	if err := errors.Join(errs...); err != nil {
		return taken{}, fmt.Errorf("%s, %s: %w", of.name, w.name, err)
	}
	t.medians = []time.Duration{quantile(t.took, 50)}
	redisAfter, err := m.redisCPU(ctx)
	t.redis = redisAfter - redisBefore
	return t, err
}

// quantile is one of sorted values, in percent.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

// add adds a round.
func (t *taken) add(o taken) {
	t.took, t.medians = append(t.took, o.took...), append(t.medians, o.medians...)
	slices.Sort(t.took)
	t.seconds += o.seconds
	t.redis += o.redis
	t.server += o.server
	t.requests += o.requests
}

// line is what is shown of an operation.
type line struct {
	Operation string           `json:"operation"`
	Clients   int              `json:"clients"`
	Ways      map[string]shown `json:"ways"`
	Ratio     float64          `json:"ratio"`         // of the p50s: (API - empty) / bare, the median of the rounds
	Trusted   float64          `json:"ratio_trusted"` // (API - empty) / trusted
	Hop       float64          `json:"ratio_hop"`     // (hop - empty) / bare: what no server comes below
	ratios    []float64
}

type shown struct {
	P50    float64 `json:"p50_us"`
	P99    float64 `json:"p99_us"`
	Second float64 `json:"requests_per_second"`
	Redis  float64 `json:"redis_cpu_us"` // a request, as is server
	Server float64 `json:"server_cpu_us"`
}

func newLine(operation string, clients int, ways []way, all []taken) line {
	l := line{Operation: operation, Clients: clients, Ways: map[string]shown{}}
	for i := range ways {
		t, n := &all[i], float64(all[i].requests)
		l.Ways[ways[i].name] = shown{us(quantile(t.took, 50)), us(quantile(t.took, 99)), n / t.seconds, 1e6 * t.redis / n, 1e6 * t.server / n}
	}
	var trusted, hop []float64
	for round := range all[0].medians {
		empty := float64(all[2].medians[round])
		over := float64(all[4].medians[round]) - empty
		l.ratios = append(l.ratios, over/float64(all[0].medians[round]))
		trusted = append(trusted, over/float64(all[1].medians[round]))
		hop = append(hop, (float64(all[3].medians[round])-empty)/float64(all[0].medians[round]))
	}
	l.Ratio, l.Trusted, l.Hop = median(l.ratios), median(trusted), median(hop)
	return l
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func tableOfReads(lines []line) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "µs\tclients\tbare p50\tp99\t/s\ttrusted p50\tp99\t/s\tempty p50\tp99\t/s\thop p50\tp99\t/s\tAPI p50\tp99\t/s\t(API-empty)/bare\tof rounds\t/trusted\t(hop-empty)/bare\tCPU: Redis bare\ttrusted\tAPI\tempty\tAPI\t")
	for _, l := range lines {
		fmt.Fprintf(out, "%s\t%d\t", l.Operation, l.Clients)
		for _, name := range []string{"bare", "trusted", "empty", "hop", "API"} {
			w := l.Ways[name]
			fmt.Fprintf(out, "%.0f\t%.0f\t%.0f\t", w.P50, w.P99, w.Second)
		}
		fmt.Fprintf(out, "%.2f\t%.2f-%.2f\t%.2f\t%.2f\t", l.Ratio, slices.Min(l.ratios), slices.Max(l.ratios), l.Trusted, l.Hop)
		fmt.Fprintf(out, "%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", l.Ways["bare"].Redis, l.Ways["trusted"].Redis, l.Ways["API"].Redis, l.Ways["empty"].Server, l.Ways["API"].Server)
	}
	return out.Flush()
}

// serveEmpty answers everything with 200 and nothing, on a port like the API's, until it is
// interrupted.
func serveEmpty(listen string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := api.Open(ctx, api.Port{
		Name: "empty port", Setting: "-listen", Listen: listen, Connections: 10_000, EndWithin: time.Second, Log: zap.NewNop(),
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }),
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
