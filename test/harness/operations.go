package harness

// This file reads the operations port, as Prometheus and an orchestrator do.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Metrics holds the values of a scrape by their series, as written there:
// standings_events_total{result="applied"}.
type Metrics map[string]float64

// Reason is a reason why a consumer is not ready.
type Reason struct{ Reason, Cause, Partition, What, Remedy string }

// operations returns the address of a consumer's operations port, once the log has reported it.
func (c *Consumer) operations() (address string, ok bool) {
	for _, line := range c.Log.Lines() {
		if line.Message == "operations port open" {
			return fmt.Sprint(line.Fields["address"]), true
		}
	}
	return "", false
}

// ask requests a path of the operations port.
func (c *Consumer) ask(ctx context.Context, path string) (code int, body string, err error) {
	address, ok := c.operations()
	if !ok {
		return 0, "", fmt.Errorf("consumer %d hasn't said where its operations port is", c.Number)
	}
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return 0, "", err
	}
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }() // nothing was written
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// Exposition returns the text of /metrics.
func (c *Consumer) Exposition(ctx context.Context) (string, error) {
	code, body, err := c.ask(ctx, "/metrics")
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("consumer %d: /metrics answers %d: %s", c.Number, code, body)
	}
	return body, err
}

// Scrape reads /metrics.
func (c *Consumer) Scrape(ctx context.Context) (Metrics, error) {
	text, err := c.Exposition(ctx)
	if err != nil {
		return nil, err
	}
	all := Metrics{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("a line of /metrics without a value: %q", line)
		}
		all[line[:at]] = value
	}
	return all, nil
}

// Counts returns the counts of events in a scrape. A missing series fails the test.
func (m Metrics) Counts(t testing.TB) Counts {
	t.Helper()
	n := func(series string) int64 {
		v, ok := m[series]
		if !ok {
			t.Errorf("/metrics doesn't show %s", series)
		}
		return int64(v)
	}
	result := func(name string) int64 { return n(`standings_events_total{result="` + name + `"}`) }
	return Counts{
		Consumed: n("standings_events_consumed_total"),
		Applied:  result("applied"), DeadLettered: result("dead_lettered"), Late: result("late"), Early: result("early"),
		Skipped: result("skipped"), Repeated: result("repeated"), Duplicates: result("duplicate"),
	}
}

// Sum returns the sum of the results.
func (c Counts) Sum() int64 {
	return c.Applied + c.DeadLettered + c.Late + c.Early + c.Skipped + c.Repeated + c.Duplicates
}

// Ready requests /readyz.
func (c *Consumer) Ready(ctx context.Context) (bool, []Reason, error) {
	code, body, err := c.ask(ctx, "/readyz")
	if err != nil {
		return false, nil, err
	}
	var answer struct {
		Ready   bool
		Reasons []Reason
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return false, nil, fmt.Errorf("consumer %d: /readyz answers %q: %w", c.Number, body, err)
	}
	if answer.Ready != (code == http.StatusOK) || answer.Ready != (len(answer.Reasons) == 0) {
		return false, nil, fmt.Errorf("consumer %d: /readyz answers %d and %s", c.Number, code, body)
	}
	return answer.Ready, answer.Reasons, nil
}

// Healthy requests /healthz.
func (c *Consumer) Healthy(ctx context.Context) (bool, error) {
	code, _, err := c.ask(ctx, "/healthz")
	return code == http.StatusOK, err
}

// AwaitReady waits until a consumer is ready.
func (c *Consumer) AwaitReady(t testing.TB, within time.Duration) {
	t.Helper()
	Eventually(t, within, func() string {
		ready, reasons, err := c.Ready(t.Context())
		if ready {
			return ""
		}
		return fmt.Sprintf("consumer %d isn't ready: %v %v", c.Number, reasons, err)
	})
}

// AwaitNotReady waits until a consumer is not ready for a reason whose What contains what, and returns the
// reason.
func (c *Consumer) AwaitNotReady(t testing.TB, within time.Duration, reason, what string) Reason {
	t.Helper()
	var found Reason
	Eventually(t, within, func() string {
		ready, reasons, err := c.Ready(t.Context())
		for _, r := range reasons {
			if r.Reason == reason && strings.Contains(r.What, what) {
				found = r
				return ""
			}
		}
		return fmt.Sprintf("consumer %d isn't unready for %s (%s): %v %v %v", c.Number, reason, what, ready, reasons, err)
	})
	return found
}
