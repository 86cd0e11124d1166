package main

// Every setting, declared once: from here come the defaults, the names in the
// environment, the checks, `consumer config` and the table in the README.

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
)

// option is the declaration of one setting.
type option struct {
	key    string
	value  value
	def    string // the default, as a person would write it
	doc    string
	secret bool // never shown
}

// variable is the option's name in the environment.
func (o option) variable() string {
	return variablePrefix + strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(o.key))
}

// chapter is a part of the documentation: settings that are told together.
type chapter struct {
	title   string
	intro   string
	options []option
}

// chapters declares all settings, kept in cfg, in the order in which they are shown.
func chapters(cfg *config) []chapter {
	return []chapter{
		{"Kafka", "", kafkaOptions(&cfg.kafka)},
		{"TLS to Kafka", "", tlsOptions("kafka", &cfg.kafka.tls)},
		{"A user of Kafka", "", kafkaSASLOptions(&cfg.kafka.sasl)},
		{"Redis", "", redisOptions(&cfg.redis)},
		{"TLS to Redis", "", tlsOptions("redis", &cfg.redis.tls)},
		{"Periods", "Each period has its own boards. What a layout comes to, `consumer config` shows: how many bits are\n" +
			"left for time, and the tick, the step in which times can be told apart. `readable` holds points and\n" +
			"time in 53 bits, `wide` in 63.", periodOptions(cfg)},
		{"Events and windows", "", eventOptions(cfg)},
		{"The process", "", processOptions(cfg)},
	}
}

// options are the settings of all chapters.
func options(cfg *config) []option {
	var all []option
	for _, c := range chapters(cfg) {
		all = append(all, c.options...)
	}
	return all
}

func kafkaOptions(c *kafkaConfig) []option {
	return []option{
		{key: "kafka.brokers", def: "localhost:9092",
			value: listValue{p: &c.brokers, what: "host:port, …", ok: hostPort},
			doc:   "Where to find the cluster: some of its brokers."},
		{key: "kafka.topics", def: "points",
			value: listValue{p: &c.topics, what: "letters, digits, `.`, `_`, `-`", ok: topicName},
			doc:   "The topics to read. Dead letters go to `<topic>.dlq`."},
		{key: "kafka.group", def: "standings",
			value: textValue{p: &c.group, what: "1 to 255 bytes", ok: groupName},
			doc:   "The consumer group: replicas of one consumer share it, and its partitions."},
		{key: "kafka.fetch_bytes", def: "1MiB",
			value: bytesValue{&c.fetchBytes, 64 * units.KiB, 64 * units.MiB},
			doc:   "The most that one fetch of one partition brings."},
		{key: "kafka.fetch_wait", def: "500ms",
			value: durationValue{&c.fetchWait, time.Millisecond, 30 * time.Second},
			doc:   "How long a broker may hold a fetch that finds nothing."},
		{key: "kafka.session_timeout", def: "10s",
			value: durationValue{&c.sessionTimeout, time.Second, 30 * time.Minute},
			doc:   "How long a replica may be silent before its partitions go to others. At least three heartbeats."},
		{key: "kafka.heartbeat", def: "1s",
			value: durationValue{&c.heartbeat, 100 * time.Millisecond, 10 * time.Minute},
			doc:   "How often a replica says that it lives."},
		{key: "kafka.timeout", def: "10s",
			value: durationValue{&c.timeout, 100 * time.Millisecond, 10 * time.Minute},
			doc:   "The deadline of one call to Kafka; a fetch has `fetch_wait` besides."},
		{key: "kafka.commit_interval", def: "1s",
			value: durationValue{&c.commitInterval, 10 * time.Millisecond, time.Hour},
			doc:   "How often offsets are committed, for lag monitors; where to go on is the ledger's to say."},
	}
}

func redisOptions(c *redisConfig) []option {
	all := []option{
		{key: "redis.addresses", def: "localhost:6379",
			value: listValue{p: &c.addresses, what: "host:port, …", ok: hostPort},
			doc:   "One server; or some nodes of a cluster; or, with `redis.sentinel.master`, some of the Sentinels."},
		{key: "redis.cluster", def: "false",
			value: boolValue{&c.cluster},
			doc:   "The one address is a cluster's, such as a hosted service's configuration endpoint. Several always are."},
		{key: "redis.sentinel.master",
			value: textValue{p: &c.sentinel.master, what: "a name"},
			doc:   "The master that the Sentinels watch, by its name with them; empty for no Sentinels."},
		{key: "redis.sentinel.username",
			value: textValue{p: &c.sentinel.username},
			doc:   "The Sentinels' own ACL user; empty for their default user."},
	}
	all = append(all, secretOptions("redis.sentinel.password", &c.sentinel.password, &c.sentinel.passwordFile, "Its password; empty for none.")...)
	all = append(all, []option{
		{key: "redis.username",
			value: textValue{p: &c.username},
			doc:   "The ACL user; empty for the default user."},
	}...)
	all = append(all, secretOptions("redis.password", &c.password, &c.passwordFile, "Its password; empty for none.")...)
	return append(all, []option{
		{key: "redis.db", def: "0",
			value: intValue{&c.db, 0, 1 << 20},
			doc:   "The database's number; a cluster has only 0."},
		{key: "redis.prefix", def: "lb",
			value: textValue{p: &c.prefix, what: "1 to 64 letters, digits, `.`, `_`, `-`", ok: prefixName},
			doc:   "What every key begins with: consumers with different prefixes share a Redis without meeting."},
		{key: "redis.shards", def: "1",
			value: shardsValue{intValue{&c.shards, 1, 1}},
			doc:   "How many hash tags the members are spread over. Only 1 for now."},
		{key: "redis.timeout", def: "5s",
			value: durationValue{&c.timeout, 10 * time.Millisecond, 10 * time.Minute},
			doc:   "The deadline of one call to Redis."},
		{key: "redis.assume_noeviction", def: "false",
			value: boolValue{&c.assumeNoeviction},
			doc:   "Start even where Redis won't tell its maxmemory-policy. With any but `noeviction`, standings get lost."},
	}...)
}

// enabledByDefault are the periods that everyone asks for first.
var enabledByDefault = []periods.Period{periods.Weekly, periods.Monthly, periods.Yearly}

// periodOptions has three settings for every period there is.
func periodOptions(cfg *config) []option {
	known := periods.All()
	cfg.periods = make([]periodConfig, len(known))
	var all []option
	for i, name := range known {
		p := &cfg.periods[i]
		p.name = name
		section := "periods." + string(name)
		all = append(all,
			option{key: section + ".enabled", def: strconv.FormatBool(slices.Contains(enabledByDefault, name)),
				value: boolValue{&p.enabled},
				doc:   "Keep " + string(name) + " boards."},
			option{key: section + ".layout", def: string(codec.Readable),
				value: choiceValue{&p.layout, layouts},
				doc:   "`readable`: a score's whole part is the points; `wide`: finer time, or more points."},
			option{key: section + ".retention", def: units.FormatDuration(name.Retention()),
				value: durationValue{&p.retention, time.Hour, 36500 * units.Day},
				doc:   "How long after its end a window can be read. A change holds for new windows."})
	}
	return all
}

// fieldOption says where a field of an event stands.
func fieldOption(name string, path *string, doc string) option {
	return option{key: "event.fields." + name, def: name,
		value: textValue{p: path, what: "a name, or names joined by dots: `player.id`", ok: fieldPath},
		doc:   doc}
}

func eventOptions(c *config) []option {
	return []option{
		{key: "start", def: "window",
			value: textValue{p: &c.start, what: "window, earliest, latest, or a time such as 2026-11-21T00:00:00Z", ok: startName},
			doc:   "Where the first start begins; `window` is the first event of a window that is still live."},
		{key: "on_gap", def: "halt",
			value: choiceValue{&c.onGap, []string{"halt", "continue"}},
			doc:   "What to do when Kafka has deleted events that weren't read: stop that partition, or go on and name what is partial."},
		{key: "time_zone", def: "UTC",
			value: textValue{p: &c.timeZone, what: "an IANA name", ok: zoneName},
			doc:   "The zone whose calendar the windows follow."},
		{key: "week_start", def: "monday",
			value: choiceValue{&c.weekStart, weekdays},
			doc:   "The first day of a week. With Monday weeks are named by ISO 8601, else by their first day."},
		{key: "max_points", def: "99999999",
			value: intValue{&c.maxPoints, 1, 1<<52 - 1},
			doc:   "Points of an event and of a standing lie within ±this. More leaves less room for time: see `consumer config`."},
		{key: "max_event_bytes", def: "1MiB",
			value: bytesValue{&c.maxEventBytes, units.KiB, 64 * units.MiB},
			doc:   "A larger event is malformed."},
		{key: "max_future", def: "5m",
			value: durationValue{&c.maxFuture, 0, units.Day},
			doc:   "How far `occurred_at` may be past the record's time."},
		{key: "lateness", def: "24h",
			value: durationValue{&c.lateness, 0, 36500 * units.Day},
			doc:   "How long after its end a window still takes events, by the record's time."},
		{key: "boards", def: "",
			value: listValue{p: &c.boards, optional: true, what: "names, or empty for any", ok: boardName},
			doc:   "The boards that events may name."},
	}
}

func processOptions(c *config) []option {
	return []option{
		fieldOption("user_id", &c.fields.UserID, "Where in a value `user_id` stands, on topics that have it elsewhere: another name, or a path into objects."),
		fieldOption("points", &c.fields.Points, "Likewise `points`."),
		fieldOption("board", &c.fields.Board, "Likewise `board`."),
		fieldOption("occurred_at", &c.fields.OccurredAt, "Likewise `occurred_at`."),
		fieldOption("event_id", &c.fields.EventID, "Likewise `event_id`, which only dead letters show."),
		{key: "fold_memory", def: "256MiB",
			value: bytesValue{&c.foldMemory, 32 * units.MiB, 1024 * units.GiB},
			doc:   "The memory for fetched and folded events, of the whole process."},
		{key: "piece_time", def: "5ms",
			value: durationValue{&c.pieceTime, 500 * time.Microsecond, 100 * time.Millisecond},
			doc:   "How long one call may keep Redis busy."},
		{key: "listen", def: ":8080",
			value: textValue{p: &c.listen, what: "host:port, :port, or off", ok: listenAddress},
			doc:   "The operations port: `/healthz`, `/readyz` with the reasons, `/metrics`. Without a host it is on all addresses; port 0 is any free one; `off` for none."},
		{key: "log.level", def: "info",
			value: choiceValue{&c.logLevel, []string{"debug", "info", "warn", "error"}},
			doc:   "The least that is logged."},
		{key: "log.format", def: "auto",
			value: choiceValue{&c.logFormat, []string{"auto", "json", "console"}},
			doc:   "`auto` is `console` on a terminal, else `json`."},
		{key: "shutdown_timeout", def: "10s",
			value: durationValue{&c.shutdownTimeout, 100 * time.Millisecond, 10 * time.Minute},
			doc:   "How long an orderly end may take."},
	}
}
