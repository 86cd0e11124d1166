package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/produce"
	"github.com/standings/standings/cmd/consumer/status"
	"github.com/standings/standings/cmd/consumer/top"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/embedded"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

// demoRun is a demo that runs in the background.
type demoRun struct {
	dir    string // its temporary directory
	stop   context.CancelFunc
	mu     sync.Mutex
	out    bytes.Buffer
	stderr bytes.Buffer
	ended  chan int
}

func (d *demoRun) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.out.Write(b)
}

func (d *demoRun) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.out.String()
}

func startDemo(t *testing.T, args ...string) *demoRun {
	t.Helper()
	d := &demoRun{dir: t.TempDir(), ended: make(chan int, 1)}
	t.Setenv("TMPDIR", d.dir)
	ctx, cancel := context.WithCancel(t.Context())
	d.stop = cancel
	go func() {
		p := &cli.Program{Stdin: strings.NewReader(""), Stdout: d, Stderr: &d.stderr}
		d.ended <- p.Run(ctx, p.Root("unknown", Command(p)), append([]string{"demo"}, args...))
	}()
	t.Cleanup(cancel)
	return d
}

// wait returns the exit code once the demo has ended.
func (d *demoRun) wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case code := <-d.ended:
		return code
	case <-time.After(limit):
		t.Fatalf("the demo doesn't end within %v:\n%s", limit, d.text())
		return -1
	}
}

// environment returns the variables from the demo's env file.
func (d *demoRun) environment(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(d.dir, "standings-demo-*", "env"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.ReplaceAll(strings.TrimSpace(string(text)), "export ", ""), "\n")
}

var summaryForm = regexp.MustCompile(`published ([\d,]+) events; ([\d,]+) were consumed: ([\d,]+) applied, ([\d,]+) dead-lettered, ([\d,]+) late, ([\d,]+) skipped, ([\d,]+) repeated`)

// figures returns the numbers of the summary, in order.
func (d *demoRun) figures(t *testing.T) []int {
	t.Helper()
	found := summaryForm.FindStringSubmatch(d.text())
	if found == nil {
		t.Fatalf("no summary in\n%s", d.text())
	}
	var all []int
	for _, text := range found[1:] {
		n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

func TestTheDemoCountsEveryEventAndLeavesNothingBehind(t *testing.T) {
	for name, with := range map[string]struct{ path, shards string }{
		"the Redis of this machine": {os.Getenv("PATH"), "1"}, "a stand-in, several shards": {t.TempDir(), "3"},
	} {
		t.Run(name, func(t *testing.T) {
			if with.shards == "1" && !slices.ContainsFunc([]string{"redis-server", "valkey-server"}, func(name string) bool {
				_, err := exec.LookPath(name)
				return err == nil
			}) {
				testenv.NotRun(t, "it needs a Redis on the PATH")
			}
			before := goleak.IgnoreCurrent()
			t.Setenv("PATH", with.path)
			d := startDemo(t, "--plain", "--rate", "700", "--members", "40", "--duration", "10s", "--shards", with.shards)
			if code := d.wait(t, time.Minute); code != 0 {
				t.Fatalf("code %d\n%s%s", code, d.text(), d.stderr.String())
			}
			n := d.figures(t)
			published, consumed, applied, dead := n[0], n[1], n[2], n[3]
			if published < 700 || published > 11*700 { // a busy machine may pause for some seconds
				t.Errorf("%d events in 10 s at 700/s", published)
			}
			if consumed != published || consumed != applied+dead+n[4]+n[5]+n[6] {
				t.Errorf("it doesn't add up: %v", n)
			}
			if dead == 0 || applied == 0 || n[4] != 0 {
				t.Errorf("some are bad and none is late: %v", n)
			}
			// On a Monday morning or the first of a month, few events are in the current window: any window
			// is accepted.
			if !regexp.MustCompile(`(?m)^\d+s   players: published .* lag: [\d,]+ events .* applied [1-9].*   global 2\d\d\d(-W?\d\d)? [A-Z]`).MatchString(d.text()) {
				t.Errorf("no line of figures and leaders in\n%s", d.text())
			}
			if !regexp.MustCompile(`(?m)   arena 2\d\d\d-W\d\d [A-Z][a-z]+ stage \d+, revives \d+`).MatchString(d.text()) {
				t.Errorf("no leader of the arena with its fields in\n%s", d.text())
			}
			for _, address := range regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(d.text(), -1) {
				if c, err := net.Dial("tcp", address); err == nil {
					_ = c.Close()
					t.Errorf("something still listens at %s", address)
				}
			}
			if left, err := os.ReadDir(d.dir); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
			// goleak itself waits for less than a second.
			leaks := goleak.Find(before)
			for deadline := time.Now().Add(30 * time.Second); leaks != nil && time.Now().Before(deadline); {
				leaks = goleak.Find(before)
			}
			if leaks != nil {
				t.Error(leaks)
			}
		})
	}
}

func TestOtherCommandsWorkOnADemoThatRunsUntilItIsInterrupted(t *testing.T) {
	d := startDemo(t, "--plain", "--rate", "100", "--members", "20")
	var stdout string
	// In the first hours of a year, nearly all events are in the previous year's window.
	windows := []string{"current", "previous"}
	for deadline, try := time.Now().Add(time.Minute), 0; ; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no standings after a minute:\n%s\n%s", stdout, d.text())
		}
		if !strings.Contains(d.text(), "In another terminal") {
			continue
		}
		var code int
		code, stdout, _ = clitest.Execute(t, top.Command, d.environment(t), "top", "global", "yearly", "--limit", "3", "--window", windows[try%2])
		try++
		if code == 0 && strings.Contains(stdout, "\n   3  ") {
			break
		}
	}
	environ := d.environment(t)
	address := regexp.MustCompile(`(?m)^In a browser: (\S+) `).FindStringSubmatch(d.text())
	if address == nil {
		t.Fatalf("no address of the page in\n%s", d.text())
	}
	for path, holds := range map[string]string{"": "<title>standings</title>", "v1/boards": `"board":"arena"`} {
		require.EventuallyWithT(t, func(c *assert.CollectT) { // the first runs in the arena take a while
			answer, err := http.Get(address[1] + path) //nolint:noctx // a port of this machine
			require.NoError(c, err)
			text, err := io.ReadAll(answer.Body)
			require.NoError(c, errors.Join(err, answer.Body.Close()))
			require.Contains(c, string(text), holds)
		}, time.Minute, 50*time.Millisecond)
	}
	http.DefaultClient.CloseIdleConnections()
	// Publish an event first, then run the commands that the demo suggests.
	file := filepath.Join(t.TempDir(), "event")
	if err := os.WriteFile(file, []byte(`{"board":"office","user_id":"u42","points":25}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := clitest.Execute(t, produce.Command, environ, "produce", "--file", file); code != 0 {
		t.Fatalf("produce: code %d %s%s", code, stdout, stderr)
	}
	hint := regexp.MustCompile(`(?m) (produce .*)$`).FindStringSubmatch(d.text())
	if hint == nil {
		t.Fatalf("no hint to produce in\n%s", d.text())
	}
	code, stdout, stderr := clitest.Execute(t, produce.Command, environ, append(strings.Fields(hint[1]), "--count", "300")...)
	if code != 0 || !strings.HasPrefix(stdout, "published 300 events") {
		t.Errorf("%s: code %d %s%s", hint[1], code, stdout, stderr)
	}
	type partition struct{ LogEnd, Lag int64 }
	all := func() []partition {
		code, stdout, stderr := clitest.Execute(t, status.Command, environ, "status", "--json")
		var s struct{ Partitions []partition }
		err := json.Unmarshal([]byte(strings.ReplaceAll(stdout, "log_end", "LogEnd")), &s)
		if err == nil && code == 0 && len(s.Partitions) == partitions {
			return s.Partitions
		}
		t.Fatalf("status: code %d %s%s", code, stdout, stderr)
		return nil
	}
	published := all()
	for i := 0; i < partitions; {
		if p := all()[i]; p.LogEnd-p.Lag >= published[i].LogEnd {
			i++
		}
	}
	begun := time.Now()
	d.stop()
	if code := d.wait(t, 30*time.Second); code != 0 || d.stderr.Len() > 0 {
		t.Errorf("code %d %s", code, d.stderr.String())
	}
	// A person expects less, but the machine may be busy with other tests.
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("it took %v to end", took)
	}
	n := d.figures(t)
	if n[1] <= n[0] || n[1] > n[0]+301 {
		t.Errorf("what others publish is consumed too: %v", n)
	}
}

func TestADemoThatFailsShowsTheEndOfItsLog(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	stage, err := openServers(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	stage.cfg.Redis.AssumeNoeviction = false // makes the consumer reject the stand-in
	p := &cli.Program{Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer)}
	err = play(t.Context(), p, &flags{rate: 100, members: 10}, stage)
	stage.close()
	if err = stage.strike(err); err == nil || !strings.Contains(err.Error(), "noeviction") ||
		!strings.Contains(err.Error(), "the log, "+stage.logPath()+", ends with: {") {
		t.Errorf("%v", err)
	}
	left, err := os.ReadDir(stage.dir)
	if err != nil || len(left) != 1 || left[0].Name() != filepath.Base(stage.logPath()) {
		t.Errorf("what is left of it: %v %v", left, err)
	}
}

func TestADemoWithAConfigurationIsRefused(t *testing.T) {
	for _, args := range [][]string{{"--config", "x.yaml"}, {"--rate", "-1"}, {"--members", "0"}, {"extra"}} {
		code, stdout, stderr := clitest.Execute(t, Command, nil, append([]string{"demo"}, args...)...)
		if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: code %d %s%s", args, code, stdout, stderr)
		}
	}
}

// frameOf returns a frame with made-up standings.
func frameOf(t *testing.T, trouble string) *frame {
	t.Helper()
	fields, err := codec.NewFields(codec.Field{Name: "stage", Max: mostStage}, codec.Field{Name: "revives", Max: mostRevives, Fewest: true})
	if err != nil {
		t.Fatal(err)
	}
	stage := &servers{dir: "/tmp/standings-demo-1", page: "http://127.0.0.1:8090/", cfg: config.Defaults(), redis: &embedded.Redis{Address: "127.0.0.1:6379", Name: "redis-server 7.0.15"}}
	game, err := newPlayers(&flags{rate: 1, members: 10})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := newWatcher(t.Context(), stage.cfg, game)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.close)
	begun := time.Now()
	for look := range 2 {
		v := &view{at: begun.Add(time.Duration(look) * time.Second), published: int64(1000 * look), lag: 12, trouble: trouble}
		for _, p := range config.DefaultPeriods {
			b := ranking.Board{Name: boardNames[0], Window: periods.Window{Period: p, Name: "2026-W47"}, Members: 1234567}
			for i := range int64(10) {
				name := fmt.Sprint("日本語\x1b[2J", (i+int64(look))%10, strings.Repeat("x", int(i)*5))
				b.Standings = append(b.Standings, ranking.Standing{Rank: i + 1, Member: name, Points: 99_999_999 - i})
			}
			v.boards = append(v.boards, b)
		}
		b := ranking.Board{Name: arena, Fields: fields, Window: periods.Window{Period: arenaPeriod, Name: "2026-W47"}, Members: 42}
		for i := range int64(10) {
			b.Standings = append(b.Standings, ranking.Standing{Rank: i + 1, Member: fmt.Sprint("runner", (i+int64(look))%10), Tuple: codec.Tuple{42 - i, 3}})
		}
		v.boards = slices.Insert(v.boards, 2, b)
		watch.take(v)
	}
	return &frame{watch: watch, stage: stage}
}

var styles = regexp.MustCompile(`\x1b\[[0-9]*m`)

func TestAFrameFitsEveryTerminal(t *testing.T) {
	for _, trouble := range []string{"", strings.Repeat("points/0 halted ", 20)} {
		f := frameOf(t, trouble)
		for f.width = 24; f.width < 200; f.width += 7 {
			for f.height = 1; f.height < 50; f.height++ {
				lines := f.lines()
				if len(lines) > f.height {
					t.Fatalf("%dx%d: %d lines", f.width, f.height, len(lines))
				}
				for _, line := range lines {
					text := styles.ReplaceAllString(line, "")
					if w := uniseg.StringWidth(text); w > f.width || strings.ContainsAny(text, "\x1b\n") {
						t.Fatalf("%dx%d: %d wide: %q", f.width, f.height, w, line)
					}
				}
			}
		}
	}
}

func TestAFrameShowsAllThatMattersOnAnOrdinaryTerminal(t *testing.T) {
	f := frameOf(t, "points/3 halted gap")
	f.width, f.height = 80, 24
	text := styles.ReplaceAllString(strings.Join(f.lines(), "\n"), "")
	for _, want := range []string{"global weekly 2026-W47", "global monthly", " arena stage/revives", " ▲ 1  runner1  42  3", "10 ", "published 1,000 (1,000/s)", "Kafka lag: 12 events", "dead-lettered 0",
		"its log: /tmp/standings-demo-1/consumer.log", "In a browser: http://127.0.0.1:8090/   In another terminal ", "points/3 halted gap", ". /tmp/standings-demo-1/env", " top eu ", " rank global ", " status", " dead-letters list ",
		"redis-cli -p 6379 ZREVRANGE 'lb:{0}:global:weekly:2026-W47' 0 4 WITHSCORES", " produce "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if !strings.Contains(text, "▲") && !strings.Contains(text, "▼") {
		t.Errorf("nobody has moved in\n%s", text)
	}
}
