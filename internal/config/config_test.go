package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "standings.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// problems loads and validates a configuration, and returns its problems by key.
func problems(t *testing.T, file string, environ ...string) map[string]*settingError {
	t.Helper()
	path := ""
	if file != "" {
		path = writeFile(t, file)
	}
	_, err := Load(path, environ)
	found := make(map[string]*settingError)
	if err == nil {
		return found
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("not a list of problems: %v", err)
	}
	for _, e := range joined.Unwrap() {
		s, ok := errors.AsType[*settingError](e)
		if !ok {
			t.Fatalf("not a problem with a setting: %v", e)
		}
		found[s.key] = s
	}
	return found
}

// refuses checks that a configuration has one problem, of a key and with a text; without a text, that it has none.
func refuses(t *testing.T, file, key, says string) {
	t.Helper()
	found := problems(t, file)
	if p := found[key]; says == "" && len(found) > 0 || says != "" && (len(found) != 1 || p == nil || !strings.Contains(p.Error(), says)) {
		t.Errorf("%s: %v, want %s: …%s", file, found, key, says)
	}
}

func TestEveryDefaultIsShownAsItIsDeclared(t *testing.T) {
	cfg := Defaults()
	for i, o := range options(&Config{}) {
		if err := o.value.set(o.def); err != nil {
			t.Errorf("%s: default %q %v", o.Key, o.def, err)
		}
		if o.value.text() != o.def {
			t.Errorf("%s: default %q is shown as %q", o.Key, o.def, o.value.text())
		}
		if got := options(cfg)[i].value.kind; got == "" || o.doc == "" {
			t.Errorf("%s isn't documented", o.Key)
		}
	}
}

func TestVariablesOfDifferentSettingsDiffer(t *testing.T) {
	owner := make(map[string]string)
	for _, o := range options(&Config{}) {
		if other, taken := owner[o.Variable()]; taken {
			t.Errorf("%s and %s are both %s", other, o.Key, o.Variable())
		}
		owner[o.Variable()] = o.Key
	}
	if owner["STANDINGS_PERIODS_ALL_TIME_LAYOUT"] != "periods.all-time.layout" {
		t.Error("periods.all-time.layout isn't STANDINGS_PERIODS_ALL_TIME_LAYOUT")
	}
}

func TestTheEnvironmentBeatsTheFileBeatsTheDefault(t *testing.T) {
	path := writeFile(t, `
kafka:
  brokers: [one:1, two:2]
  group: from-file
redis:              # nothing set below: as if it weren't there
periods:
  weekly: {layout: wide, retention: 9w}
start: 2026-11-21T00:00:00Z
`)
	l, err := Load(path, []string{
		"STANDINGS_KAFKA_BROKERS= a:9092, b:9092", "STANDINGS_FOLD_MEMORY=1GiB", "STANDINGS_KAFKA_GROUP=",
		"STANDINGS_TEST_KAFKA=elsewhere", "STANDINGS_CONFIG=ignored, as a path is given", "PATH=/bin"})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][2]string{
		"kafka.brokers":            {"a:9092,b:9092", "environment STANDINGS_KAFKA_BROKERS"},
		"kafka.group":              {"from-file", "file " + path},
		"periods.weekly.layout":    {"wide", "file " + path},
		"periods.weekly.retention": {"63d", "file " + path},
		"fold_memory":              {"1GiB", "environment STANDINGS_FOLD_MEMORY"},
		"start":                    {"2026-11-21T00:00:00Z", "file " + path},
		"redis.prefix":             {"lb", "default"},
	} {
		if s := l.setting(key); s.Shown() != want[0] || s.From.String() != want[1] {
			t.Errorf("%s is %q from %q, want %q from %q", key, s.Shown(), s.From, want[0], want[1])
		}
	}
	if got := l.Config.Kafka.Brokers; !slices.Equal(got, []string{"a:9092", "b:9092"}) {
		t.Errorf("brokers are %q", got)
	}
}

func TestSettingAKeyOfAPeriodDoesNotEnableIt(t *testing.T) {
	l, err := Load("", []string{"STANDINGS_PERIODS_DAILY_LAYOUT=wide"})
	if err != nil {
		t.Fatal(err)
	}
	for _, period := range l.Config.Periods {
		want := period.Name == "weekly" || period.Name == "monthly" || period.Name == "yearly"
		if period.Enabled != want {
			t.Errorf("%s enabled is %v", period.Name, period.Enabled)
		}
	}
}

func TestVariablesThatKubernetesSetsForServicesAreLeftAlone(t *testing.T) {
	environ := []string{"STANDINGS_SERVICE_HOST=10.0.0.1", "STANDINGS_SERVICE_PORT=80", "STANDINGS_SERVICE_PORT_HTTP=80",
		"STANDINGS_PORT=tcp://10.0.0.1:80", "STANDINGS_PORT_80_TCP=tcp://10.0.0.1:80", "STANDINGS_PORT_80_TCP_ADDR=10.0.0.1",
		"STANDINGS_REDIS_SERVICE_HOST=10.0.0.2", "STANDINGS_REDIS_PORT_6379_TCP_PROTO=tcp"}
	if found := problems(t, "", environ...); len(found) > 0 {
		t.Errorf("refused: %v", found)
	}
	for _, o := range options(&Config{}) {
		if ofService.MatchString(o.Variable()) {
			t.Errorf("%s would be taken for a service's", o.Variable())
		}
	}
	if problems(t, "", "STANDINGS_KAFKA_PROT=1")["STANDINGS_KAFKA_PROT"] == nil {
		t.Error("a mistyped name is let through")
	}
}

func TestEveryProblemIsToldAtOnce(t *testing.T) {
	found := problems(t, `
kafka: {broker: [a:1], session_timeout: 5 parsecs, fetch_bytes: 1KiB}
redis: 5
max_points: 1.5
boards: [{a: b}]
log: {level: [info]}
time_zone: {name: UTC}
`, "STANDINGS_KAFKA_TOPIC=points", "STANDINGS_SHUTDOWN_TIMEOUT=1h")
	for key, want := range map[string]struct {
		kind error
		text string
	}{
		"kafka.broker":          {errUnknown, "did you mean kafka.brokers?"},
		"STANDINGS_KAFKA_TOPIC": {errUnknown, "did you mean STANDINGS_KAFKA_TOPICS?"},
		"kafka.session_timeout": {errType, `"5 parsecs" must be a duration such as`},
		"kafka.fetch_bytes":     {errRange, "1KiB is out of range: 64KiB to 64MiB"},
		"redis":                 {errType, `is a value, but must be a section`},
		"max_points":            {errType, `"1.5" must be a whole number`},
		"boards":                {errType, "must be a list of names"},
		"log.level":             {errType, "is a list, but must be a word"},
		"time_zone":             {errType, "is a section, but must be a text"},
		"shutdown_timeout":      {errRange, "environment STANDINGS_SHUTDOWN_TIMEOUT"},
	} {
		e := found[key]
		if e == nil || !errors.Is(e, want.kind) || !errors.Is(e, ErrInvalid) || !strings.Contains(e.Error(), want.text) {
			t.Errorf("%s: got %v, want %v with %q", key, e, want.kind, want.text)
		}
		delete(found, key)
	}
	for key, e := range found {
		t.Errorf("%s: unexpected: %v", key, e)
	}
}

func TestWhatCanNotWorkIsRefused(t *testing.T) {
	for _, c := range []struct{ set, key string }{
		{"KAFKA_BROKERS=localhost", "kafka.brokers"},
		{"KAFKA_BROKERS=localhost:0", "kafka.brokers"},
		{"KAFKA_BROKERS=:9092", "kafka.brokers"},
		{"KAFKA_BROKERS=,", "kafka.brokers"},
		{"KAFKA_TOPICS=a,a", "kafka.topics"},
		{"KAFKA_TOPICS=a b", "kafka.topics"},
		{"KAFKA_TOPICS=points,points.dlq", "kafka.topics"},
		{"KAFKA_SESSION_TIMEOUT=2s", "kafka.session_timeout"},
		{"REDIS_SHARDS=257", "redis.shards"},
		{"REDIS_SHARDS=0", "redis.shards"},
		{"REDIS_PREFIX=a:b", "redis.prefix"},
		{"REDIS_PREFIX={a}", "redis.prefix"},
		{"REDIS_DB=-1", "redis.db"},
		{"PERIODS_WEEKLY_LAYOUT=tall", "periods.weekly.layout"},
		{"PERIODS_WEEKLY_RETENTION=0s", "periods.weekly.retention"},
		{"MAX_POINTS=0", "max_points"},
		{"MAX_POINTS=4503599627370496", "max_points"},
		{"START=yesterday", "start"},
		{"ON_GAP=wait", "on_gap"},
		{"TIME_ZONE=Local", "time_zone"},
		{"TIME_ZONE=Mars/Olympus", "time_zone"},
		{"WEEK_START=lundi", "week_start"},
		{"BOARDS=eu,no good", "boards"},
		{"FOLD_MEMORY=34MiB", "fold_memory"},
		{"FOLD_MEMORY=-1", "fold_memory"},
		{"LATENESS=-1s", "lateness"},
		{"LATENESS=1", "lateness"},
		{"LOG_LEVEL=loud", "log.level"},
		{"REDIS_ASSUME_NOEVICTION=perhaps", "redis.assume_noeviction"},
	} {
		if e := problems(t, "", Prefix+c.set)[c.key]; e == nil {
			t.Errorf("%s: no problem with %s", c.set, c.key)
		}
	}
	if problems(t, "periods: {weekly: {enabled: false}, monthly: {enabled: false}, yearly: {enabled: false}}")["periods.daily.enabled"] == nil {
		t.Error("a consumer without a period is accepted")
	}
}

func TestWhoReadsDoesNotBanByTheSameFile(t *testing.T) {
	of := func(bans string) *settingError {
		return problems(t, "", Prefix+"API_TOKENS_FILE=/etc/tokens", Prefix+"API_BANS_TOKENS_FILE="+bans)["api.bans_tokens_file"]
	}
	if err := of("/etc/./tokens"); err == nil || !strings.Contains(err.Error(), "every reader could ban") {
		t.Errorf("%v", err)
	}
	for _, bans := range []string{"/etc/moderators", ""} {
		if err := of(bans); err != nil {
			t.Error(err)
		}
	}
}

func TestFieldsThatCanNotAllBeReadAreRefusedByTheirNames(t *testing.T) {
	for _, c := range []struct{ file, key, problem string }{
		{"event: {fields: {user_id: player.}}", "event.fields.user_id", "has an empty name: join names by dots, as in player.id"},
		{"event: {fields: {user_id: ''}}", "event.fields.user_id", "is empty: remove it to use the field's own name"},
		{`event: {fields: {points: 'a\b'}}`, "event.fields.points", `has an invalid escape: write \. for a dot in a name, \\ for a backslash`},
		{"event: {fields: {points: user_id}}", "event.fields.points", "is the path of user_id too: every field needs its own path"},
		{"event: {fields: {user_id: player.id, board: player}}", "event.fields.board", "leads to user_id too, so it must be an object and cannot be a value"},
		{"event: {fields: {occurred_at: points.at}}", "event.fields.occurred_at", "is inside points, which must be a value and cannot be an object"},
		{"event: {fields: {nick: x}}", "event.fields.nick", "unknown setting"},
	} {
		refuses(t, c.file, c.key, c.problem)
	}
	if found := problems(t, "event: {fields: {user_id: player.id, points: 'score\\.delta'}}", "STANDINGS_EVENT_FIELDS_BOARD=player.league"); len(found) > 0 {
		t.Error(found)
	}
}

func TestListenTakesAddressesAndOff(t *testing.T) {
	for _, good := range []string{":8080", "127.0.0.1:8080", "[::1]:0", "localhost:1", "off"} {
		if err := listenAddress(good); err != nil {
			t.Errorf("%s is refused: %v", good, err)
		}
	}
	for _, bad := range []string{"", "8080", "localhost", ":99999", ":http", "a:b:c", "on"} {
		if problems(t, "", "STANDINGS_LISTEN="+bad)["listen"] == nil && bad != "" { // empty counts as not set
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestHostsAreNamesWithoutAPort(t *testing.T) {
	for text, good := range map[string]bool{"boards.example": true, "a,b-c.d": true, "boards.example:80": false, "https://a": false, "*": false, "-a": false, "a.": false, "a b": false} {
		if found := problems(t, "", "STANDINGS_API_HOSTS="+text)["api.hosts"]; (found == nil) != good {
			t.Errorf("%q: %v", text, found)
		}
	}
}

func TestEventsThatFoldMemoryHasNoRoomForAreRefusedWithTheNumberThatHas(t *testing.T) {
	for text, want := range map[string]string{
		"max_event_bytes: 1KiB\nfold_memory: 35MiB":   "",
		"fold_memory: 43MiB":                          "fold_memory: 43MiB is too small for max_event_bytes 1MiB: set it to at least 44MiB",
		"fold_memory: 44MiB":                          "",
		"max_event_bytes: 16MiB\nfold_memory: 256MiB": "at least 313MiB",
		"max_event_bytes: 64MiB":                      "at least",
	} {
		refuses(t, text, "fold_memory", want)
	}
}

func TestAMisspeltKeyIsReportedWithItsLine(t *testing.T) {
	path := writeFile(t, "# a comment\nkafka:\n  brokers: [a:1]\n  topcis: [points]\n\nredis: 5\n")
	_, err := Load(path, nil)
	for _, want := range []string{
		"kafka.topcis: unknown setting; did you mean kafka.topics? (file " + path + ", line 4)",
		"redis: is a value, but must be a section (file " + path + ", line 6)",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q isn't in\n%v", want, err)
		}
	}
}

// What the settings of one kind must have in common.
func TestSettingsThatDoNotGoTogetherAreRefused(t *testing.T) {
	for _, c := range []struct{ file, key, says string }{
		{"seal: true\narchive: {url: 'sqlite:/var/lib/standings/archive.db'}", "archive.url", ""},
		{"seal: true\narchive: {url: 'postgres://standings@db/archive'}", "archive.url", ""},
		{"seal: true\narchive: {url: 'postgresql:///archive'}", "archive.url", ""},
		{"seal: true\narchive: {url: 'mysql://db/archive'}", "archive.url", "must be sqlite:path or postgres://"},
		{"seal: true\narchive: {url: '/var/lib/archive.db'}", "archive.url", "must be sqlite:path or postgres://"},
		{"archive: {url: 'sqlite:a.db'}", "archive.url", "since only final windows are archived"},
		{"seal: true\narchive: {url: 'sqlite:a.db'}", "archive.interval", ""},
		{"seal: true\narchive: {url: 'sqlite:a.db', interval: 0s}", "archive.interval", ""},
		{"seal: true\narchive: {url: 'sqlite:a.db', interval: 6h}", "archive.interval", ""},
		{"archive: {interval: 0s}", "archive.interval", ""},
		{"archive: {interval: 6h}", "archive.interval", "requires archive.url"},
		{"seal: true\narchive: {url: 'sqlite:a.db', interval: 30s}", "archive.interval", "at least a minute"},
		{"seal: true\narchive: {url: 'sqlite:a.db', interval: often}", "archive.interval", "duration"},
		{"seal: true\nkafka: {final_topic: points.final}", "kafka.final_topic", ""},
		{"kafka: {final_topic: points.final}", "kafka.final_topic", "since only final windows are published"},
		{"seal: true\nkafka: {final_topic: points}", "kafka.final_topic", "must not be one of kafka.topics"},
		{"seal: true\nkafka: {final_topic: points.dlq}", "kafka.final_topic", "must not be the dead-letter topic of points"},
		{"seal: true\nkafka: {topics: [points, points.final.done], final_topic: points.final}", "kafka.final_topic", "points.final.done, which must not be one of kafka.topics"},
		{"seal: true\nkafka: {final_topic: points.bans, bans_topic: points.bans}", "kafka.final_topic", "must not be kafka.bans_topic"},
		{"seal: true\nkafka: {final_topic: points.final, bans_topic: points.final.done}", "kafka.final_topic", "points.final.done, which must not be kafka.bans_topic"},
		{"seal: true\nkafka: {final_topic: 'a b'}", "kafka.final_topic", "is not a topic name"},
		{"seal: true\nkafka: {final_topic: " + strings.Repeat("a", 245) + "}", "kafka.final_topic", "has 245 characters, at most 244 are possible"},
		{"api: {trusted_proxies: " + "[10.0.0.0/8, '2001:db8:1::/64', 192.0.2.7, '::1']" + "}", "api.trusted_proxies", ""},
		{"api: {trusted_proxies: " + "[nginx]" + "}", "api.trusted_proxies", `has "nginx", which must be an address, or a network such as 10.0.12.0/24`},
		{"api: {trusted_proxies: " + "[10.0.0.0/33]" + "}", "api.trusted_proxies", "or a network"},
		{"api: {trusted_proxies: " + "[10.0.0.1/24]" + "}", "api.trusted_proxies", "the network is 10.0.0.0/24"},
		{"api: {trusted_proxies: " + "[10.0.0.1, 0.0.0.0/0]" + "}", "api.trusted_proxies", "covers all addresses"},
		{"api: {trusted_proxies: " + "['::/0']" + "}", "api.trusted_proxies", "covers all addresses"},
		{"api: {trusted_proxies: " + "['fe80::1%eth0']" + "}", "api.trusted_proxies", "or a network"},
		{"api: {trusted_proxies: " + "['::ffff:10.0.0.0/104']" + "}", "api.trusted_proxies", "write it as IPv4"},
		{"api: {trusted_proxies: " + "[10.0.0.1, 10.0.0.1]" + "}", "api.trusted_proxies", "twice"},
		{"redis: " + "{addresses: [a:1, b:1], db: 3}", "redis.db", "must be 0 for a cluster (several redis.addresses)"},
		{"redis: " + "{cluster: true, db: 3}", "redis.db", "must be 0 for a cluster"},
		{"redis: " + "{cluster: true, sentinel: {master: m}}", "redis.cluster", "exclude each other"},
		{"redis: " + "{sentinel: {username: u}}", "redis.sentinel.username", "requires redis.sentinel.master"},
		{"redis: " + "{sentinel: {password: p}}", "redis.sentinel.password", "requires redis.sentinel.master"},
		{"redis: " + "{addresses: [a:1, b:1], db: 3, sentinel: {master: m, username: u, password: p}}", "", ""},
		{"redis: " + "{addresses: [a:1, b:1]}", "", ""},
		{"redis: " + "{cluster: true}", "", ""},
	} {
		refuses(t, c.file, c.key, c.says)
	}
}

func TestAnAddressIsANetworkOfOne(t *testing.T) {
	of := API{TrustedProxies: []string{"10.0.0.0/8", "192.0.2.7", "::1"}}
	if got := fmt.Sprint(of.Proxies()); got != "[10.0.0.0/8 192.0.2.7/32 ::1/128]" {
		t.Error(got)
	}
}

func TestRedisIsNamedAsItIsConfigured(t *testing.T) {
	for want, c := range map[string]Redis{
		"Redis at a:1":                          {Addresses: []string{"a:1"}},
		"Redis Cluster at a:1":                  {Addresses: []string{"a:1"}, Cluster: true},
		"Redis Cluster at a:1, b:1":             {Addresses: []string{"a:1", "b:1"}},
		"Redis lb of the Sentinels at a:1, b:1": {Addresses: []string{"a:1", "b:1"}, Sentinel: Sentinel{Master: "lb"}},
	} {
		if got := c.Name(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
