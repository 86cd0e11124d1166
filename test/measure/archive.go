package main

// How long it takes until a final window is in the archive, and what Redis and its readers notice.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// noticed is what is looked for in Redis's list of slow commands, in µs.
const noticed = 200

// archive has one window of every member become final while events come at a steady rate. The URL is
// the archive's; empty: SQLite, in a directory that goes.
func (m *measurement) archive(ctx context.Context, url string) error {
	if url == "" {
		dir, err := os.MkdirTemp("", "measure-archive-")
		if err != nil {
			return fmt.Errorf("a directory for the archive: %w", err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // the process ends
		url = "sqlite:" + filepath.Join(dir, "archive.db")
	}
	then := time.Now().AddDate(0, 0, -10)
	if err := m.everyMemberAt(ctx, then); err != nil {
		return err
	}
	c, err := m.start(ctx) // without a seal: counting isn't what is measured
	if err != nil {
		return err
	}
	if err := m.caughtUp(ctx); err != nil {
		return err
	}
	if err := c.stop(); err != nil {
		return err
	}
	for setting, value := range map[string]string{"slowlog-log-slower-than": strconv.Itoa(noticed), "slowlog-max-len": "10000"} {
		if err := m.redis.ConfigSet(ctx, setting, value).Err(); err != nil {
			return fmt.Errorf("have Redis list commands above %d µs: %w", noticed, err)
		}
	}
	if err := m.redis.Do(ctx, "slowlog", "reset").Err(); err != nil {
		return fmt.Errorf("empty Redis's list of slow commands: %w", err)
	}
	c, err = m.command(ctx, "run", "STANDINGS_SEAL=true", "STANDINGS_LATENESS=1h", "STANDINGS_ARCHIVE_URL="+url)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var beside sync.WaitGroup
	var worst time.Duration
	year, week := then.UTC().ISOWeek()
	window := fmt.Sprintf("global:weekly:%d-W%02d", year, week)
	beside.Go(func() { worst = m.watchReads(watching, m.topic+":{0}:"+window) })
	beside.Go(func() {
		// It ends by being stopped, which is no error here.
		_ = m.produce(watching, "--count", "100000000", "--rate", strconv.Itoa(m.rate))
	})
	is, err := c.archived(ctx, window)
	if err != nil {
		return err
	}
	resident := c.kilobytes()
	slow, err := m.redis.SlowLogGet(ctx, 10_000).Result()
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
		if len(l.Args) > 0 && strings.HasPrefix(strings.ToLower(l.Args[0]), "eval") && strings.Contains(strings.Join(l.Args, " "), window) {
			slowest = max(slowest, l.Duration)
		}
	}
	fmt.Printf("%d members in the archive in %.1f s, %.0f a second; the slowest of Redis's scripts for it took %v, the slowest of all reads %v; "+
		"%d events a second meanwhile, all counted %.1f s after the end; resident %d MB\n", is.Members, is.Took.Seconds(), float64(is.Members)/is.Took.Seconds(),
		slowest, worst.Round(100*time.Microsecond), m.rate, behind.Seconds(), resident/1024)
	return c.stop()
}

// archivedLine is the consumer's line of a window that is in the archive.
type archivedLine struct {
	Message string `json:"msg"`
	Window  string `json:"window"`
	Members int64  `json:"members"`
	Text    string `json:"took"`
	Took    time.Duration
}

// archived waits for it.
func (p *process) archived(ctx context.Context, window string) (is archivedLine, err error) {
	err = until(ctx, func() (bool, error) {
		log, err := os.ReadFile(p.log.Name())
		if err != nil {
			return false, fmt.Errorf("read the consumer's log: %w", err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(log)); lines.Scan(); {
			if json.Unmarshal(lines.Bytes(), &is) != nil || is.Message != "a final window is in the archive" || is.Window != window {
				continue
			}
			is.Took, err = time.ParseDuration(is.Text)
			return true, err
		}
		return false, nil
	})
	if err == nil && is.Took <= 0 {
		err = errors.New("the consumer's log doesn't say how long it took")
	}
	return is, err
}
