package main

// How long a snapshot takes while events come at a steady rate, and what Redis and its readers notice; and
// how long a restore of it takes.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// snapshot has a consumer with every member take one as it starts. The URL is snapshots.url; empty: a
// directory that goes.
func (m *measurement) snapshot(ctx context.Context, url string) error {
	if url == "" {
		dir, err := os.MkdirTemp("", "measure-snapshot-")
		if err != nil {
			return fmt.Errorf("a directory for snapshots: %w", err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // the process ends
		url = "dir:" + dir
	}
	if err := m.everyMember(ctx); err != nil {
		return err
	}
	c, err := m.start(ctx)
	if err != nil {
		return err
	}
	if err := m.caughtUp(ctx); err != nil {
		return err
	}
	if err := c.stop(); err != nil {
		return err
	}
	for setting, value := range map[string]string{"slowlog-log-slower-than": strconv.Itoa(noticed), "slowlog-max-len": "100000"} {
		if err := m.redis.ConfigSet(ctx, setting, value).Err(); err != nil {
			return fmt.Errorf("have Redis list commands above %d µs: %w", noticed, err)
		}
	}
	if err := m.redis.Do(ctx, "slowlog", "reset").Err(); err != nil {
		return fmt.Errorf("empty Redis's list of slow commands: %w", err)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var beside sync.WaitGroup
	var worst time.Duration
	year, week := time.Now().UTC().ISOWeek()
	beside.Go(func() {
		worst = m.watchReads(watching, fmt.Sprintf("%s:{0}:global:weekly:%d-W%02d", m.prefix, year, week))
	})
	beside.Go(func() {
		// It ends by being stopped, which is no error here.
		_ = m.produce(watching, "--count", "100000000", "--rate", strconv.Itoa(m.rate))
	})
	c, err = m.command(ctx, "run", "STANDINGS_SNAPSHOTS_URL="+url)
	if err != nil {
		return err
	}
	is, err := c.snapshot(ctx)
	if err != nil {
		return err
	}
	resident := c.kilobytes()
	slow, err := m.redis.SlowLogGet(ctx, 100_000).Result()
	if err != nil {
		return fmt.Errorf("ask Redis for its slow commands: %w", err)
	}
	lag := time.Now()
	stop()
	beside.Wait()
	if err := m.caughtUp(ctx); err != nil {
		return err
	}
	behind := time.Since(lag)
	var slowest time.Duration
	for _, l := range slow {
		if strings.Contains(strings.Join(l.Args, " "), m.prefix+":{0}:~snapshot") {
			slowest = max(slowest, l.Duration)
		}
	}
	fmt.Printf("%d standings in %.1f s, %.0f a second, %.1f MB, %.1f bytes each; the slowest of Redis's scripts for it took %v, the slowest of all reads %v; "+
		"%d events a second meanwhile, all counted %.1f s after the end; resident %d MB\n", is.Rows, is.Took.Seconds(), float64(is.Rows)/is.Took.Seconds(),
		float64(is.Bytes)/1e6, float64(is.Bytes)/float64(is.Rows), slowest, worst.Round(100*time.Microsecond), m.rate, behind.Seconds(), resident/1024)
	if err := c.stop(); err != nil {
		return err
	}
	return m.restore(ctx, url)
}

// restore has Redis lose the standings and the snapshot bring them back, with nobody else there. What the
// log has had since is little.
func (m *measurement) restore(ctx context.Context, url string) error {
	if err := m.forget(ctx); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, m.consumer, "restore", "--yes", "--json")
	cmd.Env = append(slices.Clip(m.env), "STANDINGS_SNAPSHOTS_URL="+url)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("consumer restore: %w\n%s", err, errs.String())
	}
	var r struct {
		Restored  bool
		Standings int64
		Records   int64
		TookMS    float64 `json:"took_ms"`
	}
	if err := json.Unmarshal(out, &r); err != nil || !r.Restored {
		return fmt.Errorf("consumer restore says %s: %w", out, err)
	}
	fmt.Printf("restored %d standings and read %d records in %.1f s, %.0f standings a second\n",
		r.Standings, r.Records, r.TookMS/1000, float64(r.Standings)/r.TookMS*1000)
	return nil
}

// snapshotLine is the consumer's line of a snapshot that was taken.
type snapshotLine struct {
	Message string `json:"msg"`
	Rows    int64  `json:"rows"`
	Bytes   int64  `json:"bytes"`
	Text    string `json:"took"`
	Took    time.Duration
}

// snapshot waits for it.
func (p *process) snapshot(ctx context.Context) (is snapshotLine, err error) {
	err = until(ctx, func() (bool, error) {
		log, err := os.ReadFile(p.log.Name())
		if err != nil {
			return false, fmt.Errorf("read the consumer's log: %w", err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(log)); lines.Scan(); {
			if json.Unmarshal(lines.Bytes(), &is) != nil || is.Message != "a snapshot was taken" {
				continue
			}
			is.Took, err = time.ParseDuration(is.Text)
			return true, err
		}
		return false, nil
	})
	return is, err
}
