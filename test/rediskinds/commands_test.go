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
	must(t, err)
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
	must(t, err)
	_, err = conn.Write([]byte("MONITOR\r\n"))
	must(t, err)
	seen, done := sent{}, make(chan struct{})
	line := regexp.MustCompile(`^\+[0-9.]+ \[\d+ (\S+)\] (.*)$`)
	quoted := regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	lines := bufio.NewReader(conn)
	_, err = lines.ReadString('\n') // OK
	must(t, err)
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
		must(t, err)
		<-done
		must(t, conn.Close())
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
	t.Cleanup(func() { must(t, look.Close()) })
	must(t, look.Do(t.Context(), "acl", "setuser", "standings", "on", ">"+secret, "~*", "+@all").Err())
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
		must(t, look.Copy(t.Context(), key, strings.Replace(key, place.Prefix, other, 1), 1, false).Err())
	}
	must(t, look.Del(t.Context(), place.Key("workers")).Err()) // otherwise it counts as in use for 30 s
	for _, args := range [][]string{{"rebuild", "--diff"}, {"diff", "--with", other}, {"drop", "--prefix", place.Prefix, "--force", "--yes"}} {
		if got := command(t, place, nil, args...); got.code != 0 {
			t.Errorf("%s: exit code %d: %s", args[0], got.code, got.stderr)
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
	must(t, filepath.WalkDir("../../internal/ranking", func(path string, _ fs.DirEntry, err error) error {
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

func TestTheVersionsOfTheDocumentAreTheServersOwn(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateRedis(t).Client(t)
	watcher := startSentinel(t, "127.0.0.1:1", 1, "")
	sentinel := redis.NewClient(&redis.Options{Addr: watcher})
	t.Cleanup(func() { must(t, sentinel.Close()) })
	for name, r := range commandsOfTheDocument(t) {
		c := server
		if strings.HasPrefix(name, "SENTINEL ") {
			c = sentinel
			harness.Eventually(t, within, func() string {
				if err := c.Ping(t.Context()).Err(); err != nil {
					return err.Error()
				}
				return ""
			})
		}
		known, err := c.Do(t.Context(), "command", "docs", strings.ReplaceAll(strings.ToLower(name), " ", "|")).Result()
		if err != nil {
			testenv.NotRun(t, "a server before Redis 7.0 has no COMMAND DOCS: "+err.Error())
		}
		docs, _ := known.(map[any]any)
		for _, about := range docs {
			about, _ := about.(map[any]any)
			if since := about["since"]; since != r.since {
				t.Errorf("%s is there since %v, and docs/redis-commands.md says %s", name, since, r.since)
			}
			for option, since := range tokens(about["arguments"]) {
				if slices.Contains(r.options, option) && since != "" && younger(since, oldest) {
					t.Errorf("%s %s is there since %s, and Redis %s has to do", name, option, since, oldest)
				}
			}
		}
		if len(docs) != 1 {
			t.Errorf("%s isn't known: %v", name, known)
		}
	}
}

// tokens returns the options of a command's arguments, each with the version that added it; "" means that the
// option is as old as the command.
func tokens(arguments any) map[string]string {
	all := map[string]string{}
	list, _ := arguments.([]any)
	for _, a := range list {
		argument, _ := a.(map[any]any)
		since, _ := argument["since"].(string)
		if token, ok := argument["token"].(string); ok {
			all[strings.ToUpper(token)] = since
		}
		for token, inner := range tokens(argument["arguments"]) {
			if inner == "" {
				inner = since
			}
			all[token] = inner
		}
	}
	return all
}
