package harness

// This file parses a consumer's log: one JSON object per line.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Log collects the lines of a process.
type Log struct {
	mu    sync.Mutex
	rest  []byte
	lines []string
	all   []Line
}

// Line is a log line in JSON.
type Line struct {
	Level   string
	Message string
	Fields  map[string]any
}

// Write accepts the process's output, cut at any place.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		l.line(l.rest[:i])
		l.rest = l.rest[i+1:]
	}
}

func (l *Log) line(text []byte) {
	l.lines = append(l.lines, string(text))
	fields := map[string]any{}
	if json.Unmarshal(text, &fields) != nil {
		return
	}
	line := Line{Fields: fields}
	line.Level, _ = fields["level"].(string)
	line.Message, _ = fields["msg"].(string)
	l.all = append(l.all, line)
}

// Lines returns the JSON lines so far.
func (l *Log) Lines() []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Line(nil), l.all...)
}

// Text returns all output so far.
func (l *Log) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n") + "\n" + string(l.rest)
}

// Tail returns the last lines.
func (l *Log) Tail(lines int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines[max(0, len(l.lines)-lines):], "\n") + "\n" + string(l.rest)
}

// Count returns the number of lines with this message.
func (l *Log) Count(message string) int {
	n := 0
	for _, line := range l.Lines() {
		if line.Message == message {
			n++
		}
	}
	return n
}

// Await waits for a line whose message contains text, and returns it.
func (l *Log) Await(t testing.TB, within time.Duration, text string) Line {
	t.Helper()
	return l.await(t, within, "no line of the log says "+strconv.Quote(text), func(line Line) bool { return strings.Contains(line.Message, text) })
}

// AwaitHalt waits until a partition has halted for a reason.
func (l *Log) AwaitHalt(t testing.TB, within time.Duration, reason string) Line {
	t.Helper()
	return l.await(t, within, "no partition has halted for "+reason, func(line Line) bool {
		return line.Message == "partition halted" && line.Fields["reason"] == reason
	})
}

func (l *Log) await(t testing.TB, within time.Duration, missing string, is func(Line) bool) (found Line) {
	t.Helper()
	Eventually(t, within, func() string {
		lines := l.Lines()
		at := slices.IndexFunc(lines, is)
		if at < 0 {
			return fmt.Sprintf("%s; the log ends with\n%s", missing, l.Tail(5))
		}
		found = lines[at]
		return ""
	})
	return found
}

// Counts holds the counts of events in the last line of a graceful end.
type Counts struct {
	Consumed, Applied, DeadLettered, Late, Early, Skipped, Repeated, Duplicates int64
}

// Counts returns the counts in the last line, if the process ended gracefully.
func (l *Log) Counts() (Counts, bool) {
	for _, line := range l.Lines() {
		if line.Message != "stopped" {
			continue
		}
		n := func(field string) int64 {
			x, _ := line.Fields[field].(float64)
			return int64(x)
		}
		return Counts{n("consumed"), n("applied"), n("dead_lettered"), n("late"), n("early"), n("skipped"), n("repeated"), n("duplicates")}, true
	}
	return Counts{}, false
}

// Add returns the sum of the counts of two processes.
func (c Counts) Add(d Counts) Counts {
	return Counts{
		c.Consumed + d.Consumed, c.Applied + d.Applied, c.DeadLettered + d.DeadLettered,
		c.Late + d.Late, c.Early + d.Early, c.Skipped + d.Skipped, c.Repeated + d.Repeated, c.Duplicates + d.Duplicates,
	}
}

// Reasons returns the reasons why a process ended, one per line: after "consumer: ", as all commands write
// them, or as the error of a log line, as run does.
func Reasons(stderr string) []string {
	var all []string
	for line := range strings.Lines(stderr) {
		if text, ok := strings.CutPrefix(line, "consumer: "); ok {
			all = append(all, strings.TrimSpace(text))
			continue
		}
		var logged struct{ Msg, Error string }
		if json.Unmarshal([]byte(line), &logged) == nil && (logged.Msg == "ended by an error" || logged.Msg == "the configuration is wrong") {
			all = append(all, logged.Error)
		}
	}
	return all
}
