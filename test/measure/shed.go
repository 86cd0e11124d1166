package main

// What readers beyond the limit cost the ingestion: the same load without readers, with many of them
// at the API of the process that counts, and with as many at a consumer serve beside it, in turn.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

// crowd are those who read without end, each the next as soon as it has the answer.
type crowd struct {
	number int
	pause  time.Duration // after a refusal
}

// readFrom is where readers come from, in turn: most from one address, as one client alone is
// refused earlier than all together, with another status. Linux has these addresses by itself.
var readFrom = []string{"127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2"}

// answered is what readers got.
type answered struct {
	statuses map[int]int     // 0 is for none
	took     []time.Duration // of those that are 200, in order
	cpu      float64         // seconds of the readers' own processor time, with the rest of this process
}

// readAt has readers read at an address until the context ends.
func (m *measurement) readAt(ctx context.Context, address string, of crowd) answered {
	all := answered{statuses: map[int]int{}}
	clients := make([]*http.Client, len(readFrom))
	for i, from := range readFrom {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		clients[i] = &http.Client{Transport: &http.Transport{DialContext: d.DialContext, MaxIdleConnsPerHost: of.number, DisableCompression: true}}
		defer clients[i].CloseIdleConnections()
	}
	var mu sync.Mutex
	var reading sync.WaitGroup
	before := ownUsage()
	for i := range of.number {
		reading.Go(func() {
			statuses, took := map[int]int{}, []time.Duration{}
			for ctx.Err() == nil {
				r := &reads[rand.IntN(len(reads))]
				members := make([]string, r.members)
				for i := range members {
					members[i] = fmt.Sprintf("player-%07d", rand.IntN(m.members))
				}
				sent := time.Now()
				status, err := answer(ctx, clients[i%len(clients)], "http://"+address+window+r.path(members), r.body(members))
				switch {
				case ctx.Err() != nil:
				case err == nil && status == http.StatusOK:
					statuses[status]++
					took = append(took, time.Since(sent))
				default:
					if err != nil {
						status = 0
					}
					statuses[status]++
					time.Sleep(of.pause)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for status, n := range statuses {
				all.statuses[status] += n
			}
			all.took = append(all.took, took...)
		})
	}
	reading.Wait()
	all.cpu = ownUsage() - before
	slices.Sort(all.took)
	return all
}

// ownUsage is this process's processor time so far, in seconds.
func ownUsage() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // shown so
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// shedding are the figures of a turn.
type shedding struct {
	figures
	answered
	behind time.Duration // live: how long after the last event all counted
	server float64       // seconds of processor time of consumer serve
}

// shed measures a load, backlog or live, in so many rounds.
func (m *measurement) shed(ctx context.Context, load string, of crowd, rounds int) error {
	if load == "backlog" {
		if err := m.publish(ctx, m.events, 0); err != nil {
			return err
		}
	} else if load != "live" {
		return fmt.Errorf("-load %s: want backlog or live", load)
	}
	ways := []string{"none", "run", "serve"} // whom readers read
	all := make([][]shedding, len(ways))
	for round := range rounds {
		for turn := range ways {
			if round%2 == 1 { // what comes first in one round comes last in the next
				turn = len(ways) - 1 - turn
			}
			one, err := m.turn(fmt.Sprintf("%s-%d-%d", m.topic, round, turn), load).shedOnce(ctx, load, ways[turn], of)
			if err != nil {
				return fmt.Errorf("readers of %s, round %d: %w", ways[turn], round+1, err)
			}
			fmt.Fprintf(os.Stderr, "round %d, readers of %s: %.1f s, %.0f events a second, answers %v\n", round+1, ways[turn], one.seconds, float64(one.events)/one.seconds, one.statuses)
			all[turn] = append(all[turn], one)
		}
	}
	return tableOfShed(ways, all, of)
}

// turn is the measurement of one turn: by a group and a prefix of its own it reads the whole topic,
// which of a live load is its own, too.
func (m *measurement) turn(name, load string) *measurement {
	one := *m
	one.prefix = name
	one.env = append(m.env[:len(m.env):len(m.env)], "STANDINGS_KAFKA_GROUP="+name, "STANDINGS_REDIS_PREFIX="+name)
	if load == "live" {
		one.topic = name
		one.env = append(one.env, "STANDINGS_KAFKA_TOPICS="+name)
	}
	return &one
}

// shedOnce measures a turn, and removes what it has written.
func (m *measurement) shedOnce(ctx context.Context, load, whom string, of crowd) (s shedding, err error) {
	if load == "live" {
		if err := m.createTopic(ctx); err != nil {
			return s, err
		}
		if err := m.publish(ctx, 10_000, 0); err != nil { // boards aren't empty
			return s, err
		}
	}
	apiAt, serveAt, err := freePorts(ctx)
	if err != nil {
		return s, err
	}
	counting, err := m.command(ctx, "run", "STANDINGS_LISTEN=off", "STANDINGS_API_LISTEN="+apiAt)
	if err != nil {
		return s, err
	}
	serving, err := m.command(ctx, "serve", "STANDINGS_LISTEN=off", "STANDINGS_API_LISTEN="+serveAt)
	if err != nil {
		return s, errors.Join(err, counting.stop())
	}
	s, err = m.shedWhile(ctx, load, counting, serving, map[string]string{"run": apiAt, "serve": serveAt}[whom], of)
	if err = errors.Join(err, serving.stop(), counting.stop()); err != nil {
		return s, err
	}
	return s, m.forget(ctx)
}

// shedWhile takes the figures while the load is counted, and readers read at an address; none: nobody does.
func (m *measurement) shedWhile(ctx context.Context, load string, counting, serving *process, address string, of crowd) (s shedding, err error) {
	ready := m.begun // joining the group isn't what is measured
	if load == "live" {
		ready = m.caughtUp
	}
	if err := ready(ctx); err != nil {
		return s, err
	}
	before, err := worked(ctx, m.masters)
	if err != nil {
		return s, err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	got := make(chan answered, 1)
	if address != "" {
		go func() { got <- m.readAt(reading, address, of) }()
	} else {
		got <- answered{}
	}
	began, used, served := time.Now(), counting.usage(), serving.usage()
	sent := began
	if load == "live" {
		if err := m.publish(ctx, m.events, m.rate); err != nil {
			return s, err
		}
		sent = time.Now()
	}
	if err := m.caughtUp(ctx); err != nil {
		return s, err
	}
	s.seconds, s.events = time.Since(began).Seconds(), int64(m.events)
	if load == "live" {
		s.behind = time.Since(sent)
	}
	s.consumer, s.server = counting.usage()-used, serving.usage()-served
	stop()
	s.answered = <-got
	after, err := worked(ctx, m.masters)
	if err != nil {
		return s, err
	}
	s.redis, s.busiest, err = since(before, after)
	return s, err
}

// forget removes what a turn has left in Redis.
func (m *measurement) forget(ctx context.Context) error {
	var keys []string
	all := m.redis.Scan(ctx, 0, m.prefix+":*", 1000).Iterator()
	for all.Next(ctx) {
		keys = append(keys, all.Val())
	}
	if err := all.Err(); err != nil || len(keys) == 0 {
		return err
	}
	return m.redis.Unlink(ctx, keys...).Err()
}

func tableOfShed(ways []string, all [][]shedding, of crowd) error {
	fmt.Printf("%d readers, each %v after a refusal\n", of.number, of.pause)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "readers of\tevents/s\trelative\tbehind at the end\tCPU: run, cores\tserve\tRedis\treaders\tanswers/s by status\t200: p50\tp99\t")
	for i, way := range ways {
		var rates, ratios, behind, run, serve, redis, own []float64
		statuses, seconds, took := map[int]int{}, 0.0, []time.Duration{}
		for round, s := range all[i] {
			first := &all[0][round]
			rates = append(rates, float64(s.events)/s.seconds)
			ratios = append(ratios, first.seconds/s.seconds)
			behind, run, serve = append(behind, s.behind.Seconds()), append(run, s.consumer/s.seconds), append(serve, s.server/s.seconds)
			redis, own = append(redis, s.redis.seconds/s.seconds), append(own, s.cpu/s.seconds)
			for status, n := range s.statuses {
				statuses[status] += n
			}
			seconds += s.seconds
			took = append(took, s.took...)
		}
		slices.Sort(took)
		var answers []string
		for _, status := range slices.Sorted(maps.Keys(statuses)) {
			name := strconv.Itoa(status)
			if status == 0 {
				name = "none"
			}
			answers = append(answers, fmt.Sprintf("%s: %.0f", name, float64(statuses[status])/seconds))
		}
		fmt.Fprintf(out, "%s\t%.0f\t%.2f\t%.2f s\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t%v\t%v\t\n", way, median(rates), median(ratios), median(behind),
			median(run), median(serve), median(redis), median(own), strings.Join(answers, ", "), ms(quantile(took, 50)), ms(quantile(took, 99)))
	}
	return out.Flush()
}
