package config

// Every setting, declared once: the source of the defaults, the environment variables, the checks, `consumer
// config` and docs/configuration.md.

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest/duplicates"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/units"
)

// option is the declaration of one setting.
type option struct {
	Key    string
	value  value
	def    string // the default, as an operator would write it
	doc    string // Markdown
	Secret bool   // never shown
	// Fixed is true for a setting that decides the bytes of the scores or the names of their keys. It is part
	// of the schema in Redis, and cannot be changed under a prefix.
	Fixed bool
	// ChangedBy is the command that changes a fixed setting, or the fields and score of a board; empty if there
	// is no such command.
	ChangedBy string
}

// Off is the value of a listen setting that opens no port.
const Off = "off"

// Variable returns the name of the option's environment variable.
func (o option) Variable() string {
	return Prefix + strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(o.Key))
}

// chapter is a part of the documentation: related settings.
type chapter struct {
	title   string
	intro   string
	options []option
}

// chapters declares all settings, which write to cfg, in the order in which they are shown. own are the names
// of the operator's own periods.
func chapters(cfg *Config, own ...periods.Period) []chapter {
	return []chapter{
		{"Kafka", "", kafkaOptions(&cfg.Kafka)},
		{"Kafka user", "", kafkaSASLOptions(&cfg.Kafka.SASL)},
		{"Redis", "", redisOptions(&cfg.Redis)},
		{"TLS", "", slices.Concat(tlsOptions("kafka", &cfg.Kafka.TLS), tlsOptions("redis", &cfg.Redis.TLS))},
		{periodsTitle, "", periodOptions(cfg, own)},
		{"Events and windows", "", eventOptions(cfg)},
		{"Event fields", "Names or paths of an event's fields, for all topics. Each field that a board counts has a setting of its own\n" +
			"too. See [the example and the rules](events.md#a-topic-that-already-exists).", fieldOptions(&cfg.Fields)},
		{"API", "[The HTTP API](api.md), part of `consumer run` or on its own with `consumer serve`.", apiOptions(&cfg.API)},
		{"Archive", "[A database](archive.md) of final windows, and of backups of open ones.", archiveOptions(&cfg.Archive)},
		{"Process", "", processOptions(cfg)},
	}
}

// options returns the settings of all chapters.
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
			doc: "Brokers to bootstrap from."},
		{Key: "kafka.topics", def: "points", value: listValue(&c.Topics, 1, "letters, digits, `.`, `_`, `-`", CheckTopic),
			doc: "Topics to read. Dead letters go to `<topic>.dlq`."},
		{Key: "kafka.group", def: "standings", value: textValue(&c.Group, "1 to 255 bytes", groupName),
			doc: "Consumer group, shared by all replicas."},
		{Key: "kafka.bans_topic", def: "", value: textValue(&c.BansTopic, "letters, digits, `.`, `_`, `-`", orNone(CheckTopic)),
			doc: "Topic of [bans](bans.md), created compacted if missing. Empty: no bans. Must be the same for all replicas."},
		{Key: "kafka.final_topic", def: "", value: textValue(&c.FinalTopic, "letters, digits, `.`, `_`, `-`", orNone(CheckTopic)),
			doc: "Topic to [publish final windows](final-topic.md) to, created compacted if missing, as is `<topic>.done`, which records what is published. Empty: off. Requires `seal`. Must be the same for all replicas."},
		{Key: "kafka.fetch_bytes", def: "1MiB", value: bytesValue(&c.FetchBytes, 64*units.KiB, 64*units.MiB),
			doc: "Maximum bytes per fetch of a partition."},
		{Key: "kafka.session_timeout", def: "10s", value: durationValue(&c.SessionTimeout, 3*time.Second, 30*time.Minute),
			doc: "Time without a heartbeat after which a replica's partitions are reassigned. Heartbeats are sent every second."},
		{Key: "kafka.timeout", def: "10s", value: durationValue(&c.Timeout, 100*time.Millisecond, 10*time.Minute),
			doc: "Timeout per call to Kafka; a fetch that waits for records has 0.5 s more."},
	}
}

func redisOptions(c *Redis) []option {
	all := []option{
		{Key: "redis.addresses", def: "localhost:6379", value: addressesValue(&c.Addresses),
			doc: "One server, some nodes of a cluster, or, with `redis.sentinel.master`, some Sentinels."},
		{Key: "redis.cluster", def: "false", value: boolValue(&c.Cluster),
			doc: "The single address belongs to a cluster, such as a hosted service's configuration endpoint. Several addresses always do."},
		{Key: "redis.sentinel.master", value: textValue(&c.Sentinel.Master, "a name", nil),
			doc: "Name of the master that the Sentinels monitor. Empty: no Sentinels."},
		{Key: "redis.sentinel.username", value: textValue(&c.Sentinel.Username, "", nil),
			doc: "ACL user of the Sentinels. Empty: the default user."},
	}
	all = append(all, secretOptions("redis.sentinel.password", &c.Sentinel.Password, &c.Sentinel.PasswordFile, "Password of the Sentinels. Empty: none.")...)
	all = append(all, option{Key: "redis.username", value: textValue(&c.Username, "", nil),
		doc: "ACL user. Empty: the default user."})
	all = append(all, secretOptions("redis.password", &c.Password, &c.PasswordFile, "Password. Empty: none.")...)
	return append(all, []option{
		{Key: "redis.db", def: "0", value: intValue(&c.DB, 0, 1<<20),
			doc: "Database number; a cluster has only 0."},
		{Key: "redis.prefix", def: "lb", value: textValue(&c.Prefix, "1 to 64 letters, digits, `.`, `_`, `-`", CheckPrefix),
			doc: "Prefix of every key. Consumers with different prefixes can share a Redis."},
		{Key: "redis.shards", Fixed: true, ChangedBy: "consumer reshard", def: "1", value: intValue(&c.Shards, 1, ledger.MaxShards),
			doc: "Number of shards that members are spread over. Each has its own hash tag, so a cluster can hold them on several masters."},
		{Key: "redis.timeout", def: "5s", value: durationValue(&c.Timeout, 10*time.Millisecond, 10*time.Minute),
			doc: "Timeout per call to Redis."},
		{Key: "redis.assume_noeviction", def: "false", value: boolValue(&c.AssumeNoeviction),
			doc: "Start even if Redis does not report its maxmemory-policy. Any policy except `noeviction` loses standings."},
	}...)
}

// DefaultPeriods are the periods that are enabled by default.
var DefaultPeriods = []periods.Period{periods.Weekly, periods.Monthly, periods.Yearly}

const (
	enabledDoc   = "Maintain the period's boards. A period [can be added later](changes.md#add-a-period), but not removed."
	layoutDoc    = "`readable`: the integer part of a score is the points. `wide`: finer times, or more points."
	retentionDoc = "How long after its end a window can be read. A change applies to new windows."
)

// periodOptions returns the settings of every period.
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
				doc: enabledDoc},
			option{Key: section + ".layout", Fixed: true, def: string(codec.Readable), value: choiceValue(&p.Layout, layouts),
				doc: layoutDoc},
			option{Key: section + ".retention", def: units.FormatDuration(name.Retention()), value: durationValue(&p.Retention, time.Hour, 36500*units.Day),
				doc: retentionDoc},
			latenessOption(section, p))
	}
	for i, name := range own {
		p := &cfg.Periods[len(known)+i]
		p.Name = name
		all = append(all, ownOptions(p)...)
	}
	return all
}

// fieldOption is the setting for the name or path of an event's field.
func fieldOption(name string, path *string, doc string) option {
	return option{Key: "event.fields." + name, def: name, value: textValue(path, "a name, or names joined by dots: `player.id`", fieldPath),
		doc: doc}
}

func eventOptions(c *Config) []option {
	return []option{
		{Key: "start", def: "window", value: textValue(&c.Start, "window, earliest, latest, or a time such as 2026-11-21T00:00:00Z", startName),
			doc: "The offset of the first start; `window` is the first event of a live window. Later starts continue from the ledger."},
		{Key: "on_gap", def: "halt", value: choiceValue(&c.OnGap, []string{"halt", "continue"}),
			doc: "If Kafka has deleted unread events: halt the partition, or continue and report what is partial."},
		{Key: "disorder", def: "", value: optionalDuration(&c.Disorder, 36500*units.Day),
			doc: "Maximum time by which a record may precede an earlier record of its partition. Empty: unknown. If set, a window can be [complete](guarantees.md#complete) although Kafka has deleted unread records."},
		{Key: "time_zone", Fixed: true, def: "UTC", value: textValue(&c.TimeZone, "an IANA name", zoneName),
			doc: "Time zone of the windows."},
		{Key: "week_start", Fixed: true, def: "monday", value: choiceValue(&c.WeekStart, weekdays),
			doc: "First day of a week. Weeks from Monday are named by ISO 8601, others by their first day."},
		{Key: "max_points", Fixed: true, def: "99999999", value: intValue(&c.MaxPoints, 1, 1<<52-1),
			doc: "Points of an event and of a standing are within ± this value. A larger range makes times coarser: see `consumer config`."},
		// A rebuild's swap is one call with three arguments per window, and Redis up to 6.2 accepts at most
		// 1,048,576 arguments per call.
		{Key: "max_windows", def: "200000", value: intValue(&c.MaxWindows, 1, 300_000),
			doc: "Maximum windows of all boards, per shard, including those that are about to be dropped. An event that would open another becomes a dead letter (`window_limit`). The last tenth is reserved for boards that already have a window."},
		{Key: "max_event_bytes", def: "1MiB", value: bytesValue(&c.MaxEventBytes, smallestEvent, 64*units.MiB),
			doc: "A larger event is malformed."},
		{Key: "max_future", def: "5m", value: durationValue(&c.MaxFuture, 0, units.Day),
			doc: "Maximum time by which `occurred_at` may be after the record's time."},
		{Key: "lateness", def: "24h", value: durationValue(&c.Lateness, 0, 36500*units.Day),
			doc: "How long after its end a window accepts events, by record time."},
		{Key: "seal", def: "false", value: boolValue(&c.Seal),
			doc: "Make windows [final](guarantees.md#10-final-windows) once they accept no more events and all earlier ones count. Later events are late for them."},
		{Key: "event.duplicates", def: "0", value: intValue(&c.Duplicates, 0, duplicates.Most),
			doc: "Number of preceding records of the partition to compare an event with. If a valid one has the same `event_id` and `user_id`, the event is a [duplicate](guarantees.md#duplicates) and does not count. 0: off. Uses 24 bytes per record and partition in addition to `fold_memory`; a replica must have enough memory for all partitions, or it does not start."},
		{Key: "boards", ChangedBy: "consumer rebuild --board", def: "", value: boardsValue(c),
			doc: "Boards that events may name, as a list or as a section with each board's [`fields`, `score` and `periods`](rules.md). Boards can be added."},
	}
}

func fieldOptions(c *event.Paths) []option {
	return []option{
		fieldOption("user_id", &c.UserID, "Field of `user_id`."),
		fieldOption("points", &c.Points, "Field of `points`."),
		fieldOption("board", &c.Board, "Field of `board`."),
		fieldOption("occurred_at", &c.OccurredAt, "Field of `occurred_at`."),
		fieldOption("event_id", &c.EventID, "Field of `event_id`, which is shown with dead letters and identifies duplicates (`event.duplicates`)."),
		{Key: "event.fields.name", def: "", value: textValue(&c.Name, "empty, a name, or names joined by dots: `player.name`", event.CheckPath),
			doc: "The member's [display name](events.md#names), 1 to 64 characters. Empty: no names."},
	}
}

func apiOptions(c *API) []option {
	return []option{
		{Key: "api.listen", def: Off, value: textValue(&c.Listen, "host:port, :port, or off", listenAddress),
			doc: "Address of the API and of the browser page. Without a host: all addresses. Port 0: any free port."},
		{Key: "api.tokens_file", value: textValue(&c.TokensFile, "a path", nil),
			doc: "File of bearer tokens for readers, one name and token (at least 16 characters) per line, reloaded on change. Empty: no authentication."},
		{Key: "api.bans_tokens_file", value: textValue(&c.BansTokensFile, "a path", nil),
			doc: "File of bearer tokens for [`/v1/bans`](api.md#bans), which must differ from `api.tokens_file`. Used by `consumer run` with `kafka.bans_topic`. Empty: no bans through the API."},
		{Key: "api.origins", value: listValue(&c.Origins, 0, "https://host, …, or *", apiOrigin),
			doc: "Origins that may read (CORS); `*` for any."},
		{Key: "api.hosts", value: listValue(&c.Hosts, 0, "boards.example, …", hostName),
			doc: "Accepted `Host` names in addition to localhost and IP addresses, if `api.listen` is a loopback address and no token is required. Other names are refused to prevent DNS rebinding."},
		{Key: "api.trusted_proxies", value: listValue(&c.TrustedProxies, 0, networkRule, checkNetwork),
			doc: "[Proxies](api-production.md#behind-a-proxy) whose `X-Forwarded-For` names the client. All connections must come from them. Empty: the client is the connecting address."},
		{Key: "api.requests", def: "64", value: intValue(&c.Requests, 1, 10_000),
			doc: "Maximum concurrent reads. As many requests may wait for an event; exports and requests about bans may each use a quarter as many. One client may use half. Others get 429 or 503 with Retry-After."},
		{Key: "api.streams", def: "2000", value: intValue(&c.Streams, 1, 100_000),
			doc: "Maximum open streams, separate from `api.requests` and shared among clients in the same way. They may show at most a quarter as many different boards and members."},
		{Key: "api.timeout", def: "5s", value: durationValue(&c.Timeout, 10*time.Millisecond, 5*time.Minute),
			doc: "Timeout per request."},
	}
}

func archiveOptions(c *Archive) []option {
	return append(secretOptions("archive.url", &c.URL, &c.URLFile,
		"`sqlite:` and a path, or `postgres://user:password@host/database`. Empty: no archive. Requires `seal`."),
		option{Key: "archive.interval", def: units.FormatDuration(ArchiveInterval), value: durationValue(&c.Interval, 0, 366*units.Day),
			doc: "Age at which the [backup](archive.md#backups) of an open window is replaced, at least 1m. 0: no backups."})
}

// smallestEvent is the minimum of max_event_bytes.
const smallestEvent = units.KiB

func processOptions(c *Config) []option {
	return []option{
		{Key: "fold_memory", def: "256MiB", value: bytesValue(&c.FoldMemory, memory.LeastMemory(smallestEvent), 1024*units.GiB),
			doc: "Memory for fetched and folded events of all partitions. At least " + units.FormatBytes(memory.LeastMemory(units.MiB)) + " with the default `max_event_bytes`, and about twenty times `max_event_bytes` if that is larger."},
		{Key: "listen", def: "127.0.0.1:8080", value: textValue(&c.Listen, "host:port, :port, or off", listenAddress),
			doc: "Address of the operations port: `/healthz`, `/readyz`, `/metrics`. It has no authentication; the image sets `:8080`. Without a host: all addresses. Port 0: any free port."},
		{Key: "log.level", def: "info", value: choiceValue(&c.LogLevel, []string{"debug", "info", "warn", "error"}),
			doc: "Minimum level to log."},
		{Key: "log.format", def: "auto", value: choiceValue(&c.LogFormat, []string{"auto", "json", "console"}),
			doc: "`auto` is `console` on a terminal, otherwise `json`."},
		{Key: "shutdown_timeout", def: "10s", value: durationValue(&c.ShutdownTimeout, 100*time.Millisecond, 10*time.Minute),
			doc: "Maximum duration of an orderly shutdown."},
	}
}
