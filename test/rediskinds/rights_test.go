package rediskinds

// The rights that docs/security.md lists: with them, everything works, and without one of them, a line names the
// missing right.

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/security.md")
	harness.Must(t, err)
	return string(text)
}

// leastRights returns the rules for keys, channels and commands in one of the document's lists.
func leastRights(t *testing.T, of string) []string {
	t.Helper()
	_, list, ok := strings.Cut(document(t), "<!-- least Redis rights: "+of+" -->")
	list, _, _ = strings.Cut(list, "<!-- end -->")
	var rules []string
	for word := range strings.FieldsSeq(list) {
		bare := strings.Trim(word, "'")
		if strings.ContainsAny(bare[:1], "+~&") {
			rules = append(rules, bare)
		}
		if bare == word && strings.ContainsAny(word, "|*&~>") {
			t.Errorf("%s: a shell takes %s for more than itself", of, word)
		}
	}
	if !ok || len(rules) == 0 {
		t.Fatalf("there is no list of the rights of the %s", of)
	}
	return rules
}

// user creates a user of a server with some rules, in which the place's prefix replaces lb. lb2 thus becomes the
// prefix followed by 2.
func user(t *testing.T, c *redis.Client, name, prefix string, rules ...string) {
	t.Helper()
	args := []any{"acl", "setuser", name, "reset", "on", ">" + secret}
	for _, r := range rules {
		args = append(args, strings.Replace(r, "~lb", "~"+prefix, 1))
	}
	harness.Must(t, c.Do(t.Context(), args...).Err())
}

// nothingRefused requires that a server has refused no calls, except CONFIG GET, which `check` tries, and commands
// that the test excludes.
func nothingRefused(t *testing.T, c *redis.Client, but ...string) {
	t.Helper()
	refused, err := c.Do(t.Context(), "acl", "log").Slice()
	harness.Must(t, err)
	for _, one := range refused {
		if about, _ := one.(map[any]any); about["object"] != "config|get" && !slices.Contains(but, fmt.Sprint(about["object"])) {
			t.Errorf("a call was refused: %v", one)
		}
	}
}

func as(name string) map[string]string {
	return map[string]string{"redis.username": name, "redis.password": secret}
}

func TestAConsumerWithTheLeastRightsDoesAllThatItDoes(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateRedis(t)
	c := server.Client(t)
	place := newPlace(t, c, as("standings"))
	place.Settings["redis.addresses"] = server.Addr()
	user(t, c, "standings", place.Prefix, leastRights(t, "consumer")...)
	place.Publish(t, earned(1, 1000)...)
	overflow := harness.Record(0, `{"user_id":"rich","points":99999999}`)
	place.Publish(t, harness.Record(0, `{"user_id":"rich","points":99999999}`))
	first := place.Start(t)
	place.AwaitCaughtUp(t, within)
	place.Produce(t, overflow)
	place.ExpectOverflow(t, overflow)
	place.AwaitCaughtUp(t, within)
	harness.Eventually(t, within, func() string {
		if len(place.Hash(t, "workers")) < 2 {
			return "the workers haven't reported"
		}
		return ""
	})
	reads(t, place)
	harness.Must(t, c.ScriptFlush(t.Context()).Err()) // the consumer must send them again
	place.Publish(t, earned(2, 100)...)
	place.AwaitCaughtUp(t, within)
	first.Terminate(t)

	old := time.Now().Add(-100 * 24 * time.Hour).UnixMilli()
	harness.Must(t, c.HSet(t.Context(), place.Key("windows"), "global:weekly:2020-W01", fmt.Sprintf(`{"end":%d,"expires":%d,"start":%d}`, old, old, old-1)).Err())
	place.Start(t).Log.Await(t, within, "dropped the listings of expired windows")
	place.Finish(t)
	nothingRefused(t, c)
}

// named returns the message about the right that a rule grants.
func named(rule, prefix string) string {
	if strings.HasPrefix(rule, "~") {
		return fmt.Sprintf("doesn't let this user use the keys of redis.prefix: grant them (ACL SETUSER … ~%s:*)", prefix)
	}
	command := strings.TrimPrefix(rule, "+")
	return fmt.Sprintf("doesn't let this user run %s: grant it (ACL SETUSER … +%s)", strings.ToUpper(command), command)
}

func without(rules []string, rule string) []string {
	return slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return r == rule })
}

func TestAReaderWithTheLeastRightsReadsByTheAPIToo(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateRedis(t)
	c := server.Client(t)
	place := newPlace(t, c, map[string]string{"redis.addresses": server.Addr(), "event.fields.name": "name"})
	place.Start(t)
	place.Publish(t, earned(1, 2000)...)
	place.AwaitCaughtUp(t, within)
	place.TerminateAll(t)
	reports(t, place)
	maps.Copy(place.Settings, as("boards"))
	user(t, c, "boards", place.Prefix, leastRights(t, "reader")...)
	harness.Must(t, c.ScriptFlush(t.Context()).Err())
	readsBoards(t, place)
	nothingRefused(t, c)
	refused(t, place, mismatch{says: []string{"doesn't let this user run "}, settings: map[string]string{"redis.assume_noeviction": "true"}}, "run")
	user(t, c, "boards", place.Prefix, append(leastRights(t, "reader"), leastRights(t, "reader of several shards")...)...)
	harness.Must(t, c.ScriptFlush(t.Context()).Err())
	harness.Must(t, c.Do(t.Context(), "acl", "log", "reset").Err())
	readsByTheAPI(t, place)
	nothingRefused(t, c, "info")
}

// readsByTheAPI requests everything that the API reads of a board.
func readsByTheAPI(t *testing.T, place *harness.Place) {
	t.Helper()
	address := place.Serve(t)
	for _, path := range []string{
		"/v1/boards", "/v1/boards/global/periods/weekly/windows", "/v1/members/m7?boards=global",
		w + "", w + "/standings?ranks=competition", w + "/standings?from=bottom", w + "/standings?min_points=1", w + "/around?member=m7",
		w + "/members/m7", w + "/members/m7?shadow=true", w + "/rank?points=3&n=2", w + "/rank?percent=10", w + "/export", w + "?min_offset=" + place.Topic + "/0@0",
	} {
		answer, err := http.Get(address + path) //nolint:gosec // a server of the test's own
		harness.Must(t, err)
		body, err := io.ReadAll(answer.Body)
		harness.Must(t, err)
		harness.Must(t, answer.Body.Close())
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d: %s", path, answer.StatusCode, body)
		}
	}
}

// w is the path of a board's window.
const w = "/v1/boards/global/periods/weekly/windows/current"

func TestWithoutARightThatAClusterTakesAConsumerSaysSoAtStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	place := newPlace(t, c.Look(t), as("standings"))
	place.Settings["redis.addresses"] = strings.Join(c.Addresses(), ",")
	rules := leastRights(t, "cluster")
	for _, rule := range rules {
		for _, n := range c.All() {
			user(t, n.C, "standings", place.Prefix, append(leastRights(t, "consumer"), without(rules, rule)...)...)
		}
		refused(t, place, mismatch{says: []string{"Redis Cluster at ", named(rule, place.Prefix)}}, "run")
	}
}

func TestTheExamplesOfTheDocumentAreConfigurations(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	client := a.Sign(t, "consumer", later())
	password := secretFile(t, secret)
	paths := strings.NewReplacer("/run/secrets/redis", password, "/run/secrets/sentinel", password, "/run/secrets/kafka", password,
		"/etc/standings/ca.pem", a.File, "/etc/standings/client.pem", client.Cert, "/etc/standings/client.key", client.Key)
	look := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // it is never used
	t.Cleanup(func() { harness.Must(t, look.Close()) })
	place := newPlace(t, look, nil)
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(document(t), -1)
	if len(examples) < 4 {
		t.Fatalf("docs/security.md has %d examples", len(examples))
	}
	for _, example := range examples {
		path := filepath.Join(t.TempDir(), "standings.yaml")
		harness.Must(t, os.WriteFile(path, []byte(paths.Replace(example[1])), 0o600))
		if got := place.Run(t, nil, "config", "--config", path); got.Code != 0 || strings.Contains(got.Stdout, secret) {
			t.Errorf("exit code %d:\n%s%s\n%s", got.Code, got.Stdout, got.Stderr, example[1])
		}
	}
}
