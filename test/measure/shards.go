package main

// The cost of shards: the same load with several numbers of shards and masters, alternately.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// variant is one of several setups that are measured alternately.
type variant struct {
	label    string
	consumer string
	shards   int
	on       int // masters
	masters  *masters
}

// figures has the results of one run.
type figures struct {
	events          int64
	seconds         float64 // elapsed
	consumer        float64 // seconds of processor time
	redis, busiest  work
	applied, writes int64 // as the consumer reports them
}

// shardsInTurn measures a load, backlog or live, for each entry "shards" or "shards:masters" of numbers.
func (m *measurement) shardsInTurn(ctx context.Context, load, numbers, against string, rounds int) error {
	if m.each && load != "live" {
		return errors.New("-each is for -load live: a backlog is read by all variants in turn")
	}
	all, err := m.variants(ctx, numbers, against)
	defer func() {
		for _, v := range all {
			v.masters.stop()
		}
	}()
	if err != nil {
		return err
	}
	var run func(context.Context, *measurement) (figures, error)
	switch load {
	case "backlog":
		if err := m.produce(ctx, "--count", strconv.Itoa(m.events)); err != nil {
			return err
		}
		run = readBacklog
	case "live":
		run = follow
	default:
		return fmt.Errorf("-load %s: want backlog or live", load)
	}
	taken := make([][]figures, len(all))
	for round := range rounds {
		for turn := range all {
			i := turn
			if round%2 == 1 { // the order alternates between rounds
				i = len(all) - 1 - turn
			}
			v := all[i]
			if err := v.masters.flush(ctx); err != nil {
				return err
			}
			f, err := run(ctx, m.with(v, fmt.Sprintf("%s-%d-%d", m.topic, round, i)))
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", v.label, round+1, err)
			}
			fmt.Printf("round %d, %s: %.1f s, Redis %.2f s, consumer %.2f s\n", round+1, v.label, f.seconds, f.redis.seconds, f.consumer)
			taken[i] = append(taken[i], f)
		}
	}
	return table(all, taken)
}

// variants starts a cluster for each variant.
func (m *measurement) variants(ctx context.Context, numbers, against string) (all []variant, err error) {
	if against != "" {
		all = append(all, variant{label: "1 on 1, " + filepath.Base(against), consumer: against, shards: 1, on: 1})
	}
	for text := range strings.SplitSeq(numbers, ",") {
		of, on, told := strings.Cut(text, ":")
		if !told {
			on = of
		}
		v := variant{label: of + " on " + on, consumer: m.consumer}
		if v.shards, err = strconv.Atoi(of); err == nil {
			v.on, err = strconv.Atoi(on)
		}
		if err != nil || v.shards < 1 || v.on < 1 {
			return nil, fmt.Errorf("-shards %s: want shards, or shards:masters", numbers)
		}
		all = append(all, v)
	}
	for i := range all {
		if all[i].masters, err = startMasters(ctx, all[i].on); err != nil {
			return all[:i], err
		}
	}
	return all, nil
}

// with returns the measurement for one run of a variant. It has its own group and prefix, and so reads the whole
// topic.
func (m *measurement) with(v variant, name string) *measurement {
	one := *m
	one.consumer, one.prefix, one.shards = v.consumer, name, v.shards
	one.redis, one.masters = v.masters.whole, v.masters.each
	one.env = append(m.env[:len(m.env):len(m.env)], "STANDINGS_KAFKA_GROUP="+name, "STANDINGS_REDIS_PREFIX="+name,
		"STANDINGS_REDIS_ADDRESSES="+strings.Join(v.masters.addresses(), ","), "STANDINGS_REDIS_CLUSTER=true")
	if v.shards > 1 { // a version without shards does not know this setting
		one.env = append(one.env, "STANDINGS_REDIS_SHARDS="+strconv.Itoa(v.shards))
	}
	if m.each {
		one.rate, one.events = m.rate*v.on, m.events*v.on
	}
	return &one
}

// readBacklog runs a consumer until it has read everything in the topic.
func readBacklog(ctx context.Context, m *measurement) (figures, error) {
	c, err := m.start(ctx)
	if err != nil {
		return figures{}, err
	}
	if err := m.begun(ctx); err != nil { // the time to join the group is not measured
		return figures{}, err
	}
	return m.between(ctx, c, int64(m.events), func() error { return nil })
}

// follow runs a consumer on its own topic while events arrive.
func follow(ctx context.Context, m *measurement) (figures, error) {
	m.topic = m.prefix
	m.env = append(m.env, "STANDINGS_KAFKA_TOPICS="+m.topic)
	if err := m.createTopic(ctx); err != nil {
		return figures{}, err
	}
	if err := m.produce(ctx, "--count", "10000"); err != nil { // so that boards are not empty
		return figures{}, err
	}
	c, err := m.start(ctx)
	if err != nil {
		return figures{}, err
	}
	if err := m.caughtUp(ctx); err != nil {
		return figures{}, err
	}
	return m.between(ctx, c, int64(m.events), func() error {
		return m.produce(ctx, "--count", strconv.Itoa(m.events), "--rate", strconv.Itoa(m.rate))
	})
}

// between measures from now on until a load is consumed.
func (m *measurement) between(ctx context.Context, c *process, events int64, load func() error) (figures, error) {
	began, used := time.Now(), c.usage()
	before, err := worked(ctx, m.masters)
	if err != nil {
		return figures{}, err
	}
	if err := load(); err != nil {
		return figures{}, err
	}
	if err := m.caughtUp(ctx); err != nil {
		return figures{}, err
	}
	f := figures{events: events, seconds: time.Since(began).Seconds(), consumer: c.usage() - used}
	after, err := worked(ctx, m.masters)
	if err != nil {
		return figures{}, err
	}
	if f.redis, f.busiest, err = since(before, after); err != nil {
		return figures{}, err
	}
	if err := c.stop(); err != nil {
		return figures{}, err
	}
	f.applied, f.writes, err = c.counts()
	return f, err
}

// counts returns the numbers of events and updates from the consumer's last line.
func (p *process) counts() (applied, updates int64, err error) {
	log, err := os.ReadFile(p.log.Name())
	if err != nil {
		return 0, 0, fmt.Errorf("read the consumer's log: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	var last struct{ Applied, Updates int64 }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		return 0, 0, fmt.Errorf("the consumer's last line %q: %w", lines[len(lines)-1], err)
	}
	if last.Applied == 0 {
		return 0, 0, errors.New("the consumer applied nothing")
	}
	return last.Applied, last.Updates, nil
}

// columns are the columns of the table. For a compared one, the ratio to the first variant is taken in each round,
// since other load on the machine changes between rounds.
var columns = []struct {
	head     string
	compared bool
	format   string
	of       func(figures) float64
}{
	{"events/s", false, "%.0f", func(f figures) float64 { return float64(f.events) / f.seconds }},
	{"events/Redis CPU s", true, "%.0f", func(f figures) float64 { return float64(f.events) / f.redis.seconds }},
	{"updates/Redis CPU s", true, "%.0f", func(f figures) float64 { return f.perEvent() * float64(f.events) / f.redis.seconds }},
	{"events/CPU s of the busiest", true, "%.0f", func(f figures) float64 { return float64(f.events) / f.busiest.seconds }},
	{"consumer µs/event", true, "%.2f", func(f figures) float64 { return f.consumer * 1e6 / float64(f.events) }},
	{"updates/event", false, "%.2f", figures.perEvent},
	{"events/call", false, "%.1f", func(f figures) float64 { return float64(f.events) / f.redis.calls }},
}

// perEvent returns the updates per event. An update is a member in a window, written once per batch.
func (f figures) perEvent() float64 { return float64(f.writes) / float64(f.applied) }

// table prints the medians of the runs.
func table(all []variant, taken [][]figures) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, "shards on masters\t")
	for _, c := range columns {
		fmt.Fprint(out, c.head, "\t")
		if c.compared {
			fmt.Fprint(out, "relative\t")
		}
	}
	fmt.Fprintln(out)
	for i, v := range all {
		fmt.Fprint(out, v.label, "\t")
		for _, c := range columns {
			var values, ratios []float64
			for round, f := range taken[i] {
				values = append(values, c.of(f))
				ratios = append(ratios, c.of(f)/c.of(taken[0][round]))
			}
			fmt.Fprintf(out, c.format+"\t", median(values))
			if c.compared {
				fmt.Fprintf(out, "%.2f\t", median(ratios))
			}
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

func median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
