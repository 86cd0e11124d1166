package config

// Every setting, declared once: from here come the defaults, the names in the
// environment, the checks, `consumer config` and the table in the README.

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/duplicates"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/units"
)

// option is the declaration of one setting.
type option struct {
	Key    string
	value  value
	def    string // the default, as a person would write it
	doc    string
	Secret bool // never shown
	// Fixed is a setting that decides the bytes of the scores or the names of their keys.
	// It is part of the schema in Redis, and can't be changed under a prefix.
	Fixed bool
	// ChangedBy is the command that changes all the same what can't be changed later, if there is one:
	// a fixed setting, or of boards the fields and the score of one.
	ChangedBy string
}

// Off is the value of listen for no port at all.
const Off = "off"

// Variable is the option's name in the environment.
func (o option) Variable() string {
	return Prefix + strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(o.Key))
}

// chapter is a part of the documentation: settings that belong together.
type chapter struct {
	title   string
	intro   string
	options []option
}

// chapters declares all settings, kept in cfg, in the order in which they are shown. own are
// the names of the periods that aren't built in.
func chapters(cfg *Config, own ...periods.Period) []chapter {
	return []chapter{
		{"Kafka", "", kafkaOptions(&cfg.Kafka)},
		{"TLS to Kafka", "", tlsOptions("kafka", &cfg.Kafka.TLS)},
		{"A user of Kafka", "", kafkaSASLOptions(&cfg.Kafka.SASL)},
		{"Redis", "", redisOptions(&cfg.Redis)},
		{"TLS to Redis", "", tlsOptions("redis", &cfg.Redis.TLS)},
		{"Periods", "Each period has its own boards. `consumer config` shows what each layout results in: how many bits are\n" +
			"left for time, and the tick, the smallest time step. `readable` holds points and\n" +
			"time in 53 bits, `wide` in 63.", periodOptions(cfg, own)},
		{"Events and windows", "", eventOptions(cfg)},
		{"Fields of an event", "For topics whose events have other field names, or have them in objects: each setting is the name of a\n" +
			"field, or its path. A field that a board counts has a setting by its name beside these.\n" +
			"One mapping holds for all topics. It can be changed in a rolling way.\n" +
			"[events.md](events.md#a-topic-that-already-exists) has an example and the rules.", fieldOptions(&cfg.Fields)},
		{"The API", "For those who show boards: JSON over HTTP, beside `consumer run` or by `consumer serve` alone. [api.md](api.md) has it.", apiOptions(&cfg.API)},
		{"The archive", "A database that keeps final windows once Redis and Kafka don't have them any more, and backups of open windows. [archive.md](archive.md) has its tables.", archiveOptions(&cfg.Archive)},
		{"The process", "", processOptions(cfg)},
	}
}

// options are the settings of all chapters.
func options(cfg *Config, own ...periods.Period) []option {
	var all []option
	for _, c := range chapters(cfg, own...) {
		all = append(all, c.options...)
	}
	return all
}

func kafkaOptions(c *Kafka) []option {
	return []option{
		{Key: "kafka.brokers", def: "localhost:9092", value: addressesValue(&c.Brokers),
			doc: "Where to find the cluster: some of its brokers."},
		{Key: "kafka.topics", def: "points", value: listValue(&c.Topics, 1, "letters, digits, `.`, `_`, `-`", CheckTopic),
			doc: "The topics to read. Dead letters go to `<topic>.dlq`."},
		{Key: "kafka.group", def: "standings", value: textValue(&c.Group, "1 to 255 bytes", groupName),
			doc: "The consumer group: replicas of one consumer share it, and its partitions."},
		{Key: "kafka.bans_topic", def: "", value: textValue(&c.BansTopic, "letters, digits, `.`, `_`, `-`", orNone(CheckTopic)),
			doc: "The topic that keeps who isn't shown, and why; created compacted where it is missing. Empty for off: nobody can be banned. The same for all replicas: see [bans.md](bans.md)."},
		{Key: "kafka.final_topic", def: "", value: textValue(&c.FinalTopic, "letters, digits, `.`, `_`, `-`", orNone(CheckTopic)),
			doc: "The topic that final windows are published to, for whoever pays out rewards; created compacted where it is missing, like `<topic>.done`, which records what is published. Empty for off. It needs `seal`. The same for all replicas: see [final-topic.md](final-topic.md)."},
		{Key: "kafka.fetch_bytes", def: "1MiB", value: bytesValue(&c.FetchBytes, 64*units.KiB, 64*units.MiB),
			doc: "The most that one fetch of one partition brings."},
		{Key: "kafka.session_timeout", def: "10s", value: durationValue(&c.SessionTimeout, 3*time.Second, 30*time.Minute),
			doc: "How long a replica may be silent before its partitions go to others. It sends a heartbeat each second."},
		{Key: "kafka.timeout", def: "10s", value: durationValue(&c.Timeout, 100*time.Millisecond, 10*time.Minute),
			doc: "The deadline of one call to Kafka; a fetch that waits for records has half a second besides."},
	}
}

func redisOptions(c *Redis) []option {
	all := []option{
		{Key: "redis.addresses", def: "localhost:6379", value: addressesValue(&c.Addresses),
			doc: "One server; or some nodes of a cluster; or, with `redis.sentinel.master`, some of the Sentinels."},
		{Key: "redis.cluster", def: "false", value: boolValue(&c.Cluster),
			doc: "The one address is a cluster's, such as a hosted service's configuration endpoint. Several always are."},
		{Key: "redis.sentinel.master", value: textValue(&c.Sentinel.Master, "a name", nil),
			doc: "The master that the Sentinels watch, by its name with them; empty for no Sentinels."},
		{Key: "redis.sentinel.username", value: textValue(&c.Sentinel.Username, "", nil),
			doc: "The Sentinels' own ACL user; empty for their default user."},
	}
	all = append(all, secretOptions("redis.sentinel.password", &c.Sentinel.Password, &c.Sentinel.PasswordFile, "Its password; empty for none.")...)
	all = append(all, option{Key: "redis.username", value: textValue(&c.Username, "", nil),
		doc: "The ACL user; empty for the default user."})
	all = append(all, secretOptions("redis.password", &c.Password, &c.PasswordFile, "Its password; empty for none.")...)
	return append(all, []option{
		{Key: "redis.db", def: "0", value: intValue(&c.DB, 0, 1<<20),
			doc: "The database's number; a cluster has only 0."},
		{Key: "redis.prefix", def: "lb", value: textValue(&c.Prefix, "1 to 64 letters, digits, `.`, `_`, `-`", CheckPrefix),
			doc: "What every key begins with: consumers with different prefixes can share a Redis."},
		{Key: "redis.shards", Fixed: true, ChangedBy: "consumer reshard", def: "1", value: intValue(&c.Shards, 1, ledger.MaxShards),
			doc: "How many shards the members are spread over, each with a hash tag of its own: a cluster has them on several masters."},
		{Key: "redis.timeout", def: "5s", value: durationValue(&c.Timeout, 10*time.Millisecond, 10*time.Minute),
			doc: "The deadline of one call to Redis."},
		{Key: "redis.assume_noeviction", def: "false", value: boolValue(&c.AssumeNoeviction),
			doc: "Start even where Redis doesn't show its maxmemory-policy. With any but `noeviction`, standings get lost."},
	}...)
}

// DefaultPeriods are the periods that everyone asks for first.
var DefaultPeriods = []periods.Period{periods.Weekly, periods.Monthly, periods.Yearly}

const layoutDoc = "`readable`: a score's whole part is the points; `wide`: finer time, or more points."

// periodOptions has the settings of every period there is.
func periodOptions(cfg *Config, own []periods.Period) []option {
	known := periods.All()
	cfg.Periods = make([]Period, len(known)+len(own))
	var all []option
	for i, name := range known {
		p := &cfg.Periods[i]
		p.Name = name
		section := "periods." + string(name)
		all = append(all,
			option{Key: section + ".enabled", Fixed: true, def: strconv.FormatBool(slices.Contains(DefaultPeriods, name)), value: boolValue(&p.Enabled),
				doc: "Keep " + string(name) + " boards. " + addedLater},
			option{Key: section + ".layout", Fixed: true, def: string(codec.Readable), value: choiceValue(&p.Layout, layouts),
				doc: layoutDoc},
			option{Key: section + ".retention", def: units.FormatDuration(name.Retention()), value: durationValue(&p.Retention, time.Hour, 36500*units.Day),
				doc: "How long after its end a window can be read. A change holds for new windows."},
			latenessOption(section, p))
	}
	for i, name := range own {
		p := &cfg.Periods[len(known)+i]
		p.Name = name
		all = append(all, ownOptions(p)...)
	}
	return all
}

// fieldOption says where a field of an event stands.
func fieldOption(name string, path *string, doc string) option {
	return option{Key: "event.fields." + name, def: name, value: textValue(path, "a name, or names joined by dots: `player.id`", fieldPath),
		doc: doc}
}

func eventOptions(c *Config) []option {
	return []option{
		{Key: "start", def: "window", value: textValue(&c.Start, "window, earliest, latest, or a time such as 2026-11-21T00:00:00Z", startName),
			doc: "Where the first start begins; `window` is the first event of a window that is still live. Later starts go on from the ledger, whatever this is."},
		{Key: "on_gap", def: "halt", value: choiceValue(&c.OnGap, []string{"halt", "continue"}),
			doc: "What to do when Kafka has deleted events that weren't read: stop that partition, or go on and name what is partial."},
		{Key: "disorder", def: "", value: optionalDuration(&c.Disorder, 36500*units.Day),
			doc: "How far a record's time may be before that of an earlier record of its partition; empty if that isn't known. " +
				"With it a window can be complete although Kafka has deleted records that were never read: see docs/guarantees.md."},
		{Key: "time_zone", Fixed: true, def: "UTC", value: textValue(&c.TimeZone, "an IANA name", zoneName),
			doc: "The zone whose calendar the windows follow."},
		{Key: "week_start", Fixed: true, def: "monday", value: choiceValue(&c.WeekStart, weekdays),
			doc: "The first day of a week. With Monday weeks are named by ISO 8601, else by their first day."},
		{Key: "max_points", Fixed: true, def: "99999999", value: intValue(&c.MaxPoints, 1, 1<<52-1),
			doc: "Points of an event and of a standing are within ±this. A larger range leaves coarser times: see `consumer config`."},
		// A rebuild's swap is one call with three arguments a window, and up to Redis 6.2 a
		// call has 1,048,576 at most.
		{Key: "max_windows", def: "200000", value: intValue(&c.MaxWindows, 1, 300_000),
			doc: "Windows of all boards, each counted until it is gone. An event that would open one more is a dead letter, `window_limit`. The last tenth is for boards that have a window already. Of several shards it is the limit of each, for the windows that its members are in."},
		{Key: "max_event_bytes", def: "1MiB", value: bytesValue(&c.MaxEventBytes, smallestEvent, 64*units.MiB),
			doc: "A larger event is malformed."},
		{Key: "max_future", def: "5m", value: durationValue(&c.MaxFuture, 0, units.Day),
			doc: "How far `occurred_at` may be past the record's time."},
		{Key: "lateness", def: "24h", value: durationValue(&c.Lateness, 0, 36500*units.Day),
			doc: "How long after its end a window still takes events, by the record's time."},
		{Key: "seal", def: "false", value: boolValue(&c.Seal),
			doc: "Make windows final once they take no events any more and all that came before counts: whatever comes later is late for them. See docs/guarantees.md."},
		{Key: "event.duplicates", def: "0", value: intValue(&c.Duplicates, 0, duplicates.Most),
			doc: "How many records of its partition an event is compared with, the ones just before it: if a valid one has the same `event_id` and `user_id`, it is a duplicate and doesn't count. 0 is for off: every repeat counts. " +
				"It takes 24 bytes a record and partition, beside `fold_memory`, and any replica may come to have all partitions: what takes more memory than a replica may have ends its start. " +
				"[guarantees.md](guarantees.md#duplicates) says what is found and what isn't."},
		{Key: "boards", ChangedBy: "consumer rebuild --board", def: "", value: boardsValue(c),
			doc: "The boards that events may name. As a section, each with its `fields`, `score` and `periods`: see [rules.md](rules.md). " +
				"Boards can be added."},
	}
}

func fieldOptions(c *event.Paths) []option {
	return []option{
		fieldOption("user_id", &c.UserID, "Where the value has `user_id`."),
		fieldOption("points", &c.Points, "Where it has `points`."),
		fieldOption("board", &c.Board, "Where it has `board`."),
		fieldOption("occurred_at", &c.OccurredAt, "Where it has `occurred_at`."),
		fieldOption("event_id", &c.EventID, "Where it has `event_id`, which is shown with dead letters, and finds duplicates (`event.duplicates`)."),
		{Key: "event.fields.name", def: "", value: textValue(&c.Name, "empty, a name, or names joined by dots: `player.name`", event.CheckPath),
			doc: "Where it has what the member wants to be called, 1 to 64 characters; empty if names aren't counted. See [events.md](events.md#names)."},
	}
}

func apiOptions(c *API) []option {
	return []option{
		{Key: "api.listen", def: Off, value: textValue(&c.Listen, "host:port, :port, or off", listenAddress),
			doc: "The port of the API, and of the page that shows boards in a browser. Without a host it is on all addresses; port 0 is any free one; `off` for none."},
		{Key: "api.tokens_file", value: textValue(&c.TokensFile, "a path", nil),
			doc: "A file of bearer tokens, a name and a token of at least 16 characters a line, of which one is needed to read. It is read again once it has changed. Empty: anyone who reaches the port may read."},
		{Key: "api.bans_tokens_file", value: textValue(&c.BansTokensFile, "a path", nil),
			doc: "A file like that, another one, of which a token is needed to ban and to see who is banned: [`/v1/bans`](api.md#bans), of `consumer run` with `kafka.bans_topic`. Empty: nobody bans by the API."},
		{Key: "api.origins", value: listValue(&c.Origins, 0, "https://host, …, or *", apiOrigin),
			doc: "The origins whose pages may read (CORS); `*` for any."},
		{Key: "api.hosts", value: listValue(&c.Hosts, 0, "boards.example, …", hostName),
			doc: "Accepted `Host` names in addition to localhost and IP addresses, if `api.listen` is a loopback address and no token is required. The API refuses other names, since a page in a browser on this machine could read the boards by a name of its own (DNS rebinding)."},
		{Key: "api.trusted_proxies", value: listValue(&c.TrustedProxies, 0, networkRule, checkNetwork),
			doc: "The proxies, and nobody else, from which the port is reached: of what they send, `X-Forwarded-For` says which client it is for. Empty: a client is whoever connects. See [api-production.md](api-production.md#behind-a-proxy)."},
		{Key: "api.requests", def: "64", value: intValue(&c.Requests, 1, 10_000),
			doc: "Maximum concurrent reads. As many requests may wait for an event, and a quarter as many each may be exports and requests about bans. A client gets a further one while it has fewer than are free, so one client alone has half. Others get 429 or 503 with Retry-After."},
		{Key: "api.streams", def: "2000", value: intValue(&c.Streams, 1, 100_000),
			doc: "Maximum open streams, shared among clients as `api.requests` are. They show at most a quarter as many different boards and members. They don't count as requests."},
		{Key: "api.timeout", def: "5s", value: durationValue(&c.Timeout, 10*time.Millisecond, 5*time.Minute),
			doc: "How long a request may take."},
	}
}

func archiveOptions(c *Archive) []option {
	return append(secretOptions("archive.url", &c.URL, &c.URLFile,
		"Where final windows are kept for good: `sqlite:` and the path of a file, or `postgres://user:password@host/database`. Empty: nowhere. It needs `seal`. See [archive.md](archive.md)."),
		option{Key: "archive.interval", def: units.FormatDuration(ArchiveInterval), value: durationValue(&c.Interval, 0, 366*units.Day),
			doc: "How old the [backup](archive.md#backups) of an open window in the archive may become before the next replaces it; 0: no backups. Otherwise a minute at least."})
}

// smallestEvent is the least that max_event_bytes can be.
const smallestEvent = units.KiB

func processOptions(c *Config) []option {
	return []option{
		{Key: "fold_memory", def: "256MiB", value: bytesValue(&c.FoldMemory, ingest.LeastMemory(smallestEvent), 1024*units.GiB),
			doc: "The memory for fetched and folded events, of the whole process and any number of partitions. At least " + units.FormatBytes(ingest.LeastMemory(units.MiB)) + " with the default `max_event_bytes`, and some twenty times that if it is larger."},
		{Key: "listen", def: "127.0.0.1:8080", value: textValue(&c.Listen, "host:port, :port, or off", listenAddress),
			doc: "The operations port: `/healthz`, `/readyz` with the reasons, `/metrics`. It has no password, so by default only this machine reaches it; the image sets `:8080`. Without a host it is on all addresses; port 0 is any free one; `off` for none."},
		{Key: "log.level", def: "info", value: choiceValue(&c.LogLevel, []string{"debug", "info", "warn", "error"}),
			doc: "The least that is logged."},
		{Key: "log.format", def: "auto", value: choiceValue(&c.LogFormat, []string{"auto", "json", "console"}),
			doc: "`auto` is `console` on a terminal, else `json`."},
		{Key: "shutdown_timeout", def: "10s", value: durationValue(&c.ShutdownTimeout, 100*time.Millisecond, 10*time.Minute),
			doc: "How long an orderly end may take."},
	}
}
