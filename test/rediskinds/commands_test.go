package rediskinds

// Compares docs/redis-commands.md with the commands that a server receives from the consumer, and with the server's
// own documentation of its commands.

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// row is a row of the document.
type row struct {
	since   string
	options []string
}

// oldest is the oldest Redis that must work.
const oldest = "6.2.0"

func commandsOfTheDocument(t *testing.T) map[string]row {
	t.Helper()
	text, err := os.ReadFile("../../docs/redis-commands.md")
	harness.Must(t, err)
	rows := map[string]row{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z -]+)` \\| ([0-9.]+) \\| ([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		r := row{since: m[2]}
		for _, o := range regexp.MustCompile("`([A-Z]+)`").FindAllStringSubmatch(m[3], -1) {
			r.options = append(r.options, o[1])
		}
		rows[m[1]] = r
	}
	return rows
}

// containers are the commands with subcommands.
var containers = []string{"CLIENT", "CLUSTER", "CONFIG", "SENTINEL"}

// optionsFrom has the index of the first option for the commands that have options. Numbers are not options.
var optionsFrom = map[string]int{"HELLO": 2, "HSCAN": 3, "PEXPIREAT": 3, "SCAN": 2, "SET": 3, "ZADD": 2, "ZREVRANGE": 4, "ZREVRANK": 3, "INFO": 2, "ZSCAN": 3}

// sent has the commands that a server received, and the options of each.
type sent map[string]map[string]bool

func (s sent) add(words []string) {
	name := strings.ToUpper(words[0])
	if slices.Contains(containers, name) && len(words) > 1 {
		name += " " + strings.ToUpper(words[1])
	}
	if s[name] == nil {
		s[name] = map[string]bool{}
	}
	from, has := optionsFrom[name]
	for i := from; has && i < len(words); i++ {
		if _, err := strconv.ParseFloat(words[i], 64); err == nil {
			if name == "ZADD" {
				return // the first score: members follow
			}
			continue
		}
		s[name][strings.ToUpper(words[i])] = true
		switch {
		case name == "HELLO" && strings.EqualFold(words[i], "auth"):
			i += 2
		case strings.EqualFold(words[i], "match"): // followed by a pattern
			i++
		}
	}
}

// watch records the commands that a server receives from clients except those that but selects, until stop is called.
func watch(t *testing.T, address string, but func(client string) bool) (stop func() sent) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	harness.Must(t, err)
	_, err = conn.Write([]byte("MONITOR\r\n"))
	harness.Must(t, err)
	seen, done := sent{}, make(chan struct{})
	line := regexp.MustCompile(`^\+[0-9.]+ \[\d+ (\S+)\] (.*)$`)
	quoted := regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	lines := bufio.NewReader(conn)
	_, err = lines.ReadString('\n') // OK
	harness.Must(t, err)
	go func() {
		defer close(done)
		for {
			text, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			m := line.FindStringSubmatch(strings.TrimSpace(text))
			if m == nil || but(m[1]) {
				continue
			}
			var words []string
			for _, q := range quoted.FindAllString(m[2], -1) {
				word, err := strconv.Unquote(q)
				if err != nil {
					word = q
				}
				words = append(words, word)
			}
			seen.add(words)
		}
	}()
	return func() sent {
		// The reply to QUIT follows all monitored commands, and ends the loop.
		_, err := conn.Write([]byte("QUIT\r\n"))
		harness.Must(t, err)
		<-done
		harness.Must(t, conn.Close())
		return seen
	}
}

func TestEveryCommandThatIsSentIsListedAndIsNoYoungerThanRedis62(t *testing.T) {
	t.Parallel()
	server := testenv.LocalRedis(t) // senders are distinguished by address, which a container's network hides
	var one sync.Mutex
	ours := map[string]bool{}
	look := redis.NewClient(&redis.Options{
		Addr: server.Addr(), DB: 1,
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				one.Lock()
				ours[conn.LocalAddr().String()] = true
				one.Unlock()
			}
			return conn, err
		},
	})
	t.Cleanup(func() { harness.Must(t, look.Close()) })
	harness.Must(t, look.Do(t.Context(), "acl", "setuser", "standings", "on", ">"+secret, "~*", "+@all").Err())
	place := newPlace(t, look, as("standings"))
	place.Settings["redis.addresses"], place.Settings["redis.db"] = server.Addr(), "1"
	stop := watch(t, server.Addr(), func(client string) bool {
		one.Lock()
		defer one.Unlock()
		return ours[client]
	})
	wholeRun(t, place)
	place.Command(t, "check")
	other := place.Prefix + "2"
	for _, key := range look.Keys(t.Context(), place.Prefix+":*").Val() {
		harness.Must(t, look.Copy(t.Context(), key, strings.Replace(key, place.Prefix, other, 1), 1, false).Err())
	}
	harness.Must(t, look.Del(t.Context(), place.Key("workers")).Err()) // otherwise it counts as in use for 30 s
	for _, args := range [][]string{{"rebuild", "--diff"}, {"diff", "--with", other}, {"drop", "--prefix", place.Prefix, "--force", "--yes"}} {
		if got := place.Run(t, nil, args...); got.Code != 0 {
			t.Errorf("%s: exit code %d: %s", args[0], got.Code, got.Stderr)
		}
	}
	all := stop()
	add := func(words ...string) {
		if name := strings.ToUpper(strings.Join(words, " ")); all[name] == nil {
			all[name] = map[string]bool{}
		}
	}
	for _, list := range []string{"consumer", "cluster", "reader", "diff", "drop", "rebuild", "Sentinel"} {
		for _, rule := range leastRights(t, list) {
			if command, ok := strings.CutPrefix(rule, "+"); ok { // no call was refused with these rights
				add(strings.Split(command, "|")...)
			}
		}
	}
	for _, command := range ofScripts(t) {
		add(command)
	}
	add("AUTH")          // used if the server does not know HELLO
	add("CONFIG", "GET") // not shown by MONITOR
	add("SENTINEL", "MASTERS")
	rows := commandsOfTheDocument(t)
	for name, options := range all {
		r, listed := rows[name]
		if !listed {
			t.Errorf("%s is sent, and isn't in docs/redis-commands.md", name)
		}
		for option := range options {
			if !slices.Contains(r.options, option) {
				t.Errorf("%s is sent with %s, which isn't in docs/redis-commands.md", name, option)
			}
		}
		for _, option := range r.options {
			if !options[option] {
				t.Errorf("docs/redis-commands.md lists %s with %s, which isn't sent", name, option)
			}
		}
	}
	for name, r := range rows {
		if all[name] == nil {
			t.Errorf("docs/redis-commands.md lists %s, which isn't sent", name)
		}
		if younger(r.since, oldest) {
			t.Errorf("%s is there since %s, and Redis %s has to do", name, r.since, oldest)
		}
	}
}

// ofScripts returns the commands that scripts call.
func ofScripts(t *testing.T) []string {
	t.Helper()
	var all []string
	harness.Must(t, filepath.WalkDir("../../internal/ranking", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".lua" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`\bcall\('([A-Z]+)'`).FindAllSubmatch(text, -1) {
			all = append(all, string(m[1]))
		}
		return err
	}))
	if len(all) < 20 {
		t.Fatalf("the scripts call only %v", all)
	}
	return all
}

func younger(version, than string) bool {
	var a, b [3]int
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &a[0], &a[1], &a[2])
	_, _ = fmt.Sscanf(than, "%d.%d.%d", &b[0], &b[1], &b[2])
	return slices.Compare(a[:], b[:]) > 0
}
