// Package config has the configuration: the settings of a YAML file and the environment, their defaults and
// their validation. Each setting is declared once, in options.go, with its name, default, range and
// documentation. Load reads the settings; the rest of the program uses Config.
package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/periods"
)

// Config has the values in effect.
type Config struct {
	Kafka   Kafka
	Redis   Redis
	Periods []Period // the built-in ones in the order of periods.All, then the operator's own by name

	Start string // window, earliest, latest, or an RFC 3339 time
	OnGap string // halt or continue
	// Disorder is how much earlier a record may be than an earlier record of its partition; nil: unknown.
	Disorder *time.Duration
	Boards   []string // the names that events may use; none: any
	// Specs are the boards by name, if boards is a section.
	Specs []BoardSpec

	TimeZone  string
	WeekStart string
	MaxPoints int64
	// MaxWindows is the maximum number of listed windows.
	MaxWindows int64

	Fields        event.Paths
	Others        []event.Other // the other fields that boards count
	MaxEventBytes int64
	MaxFuture     time.Duration
	Lateness      time.Duration
	Seal          bool

	// Duplicates is the number of preceding records in which an event with the same ids is a duplicate; 0: off.
	Duplicates int64

	FoldMemory int64 // bytes

	Listen string // host:port, or off
	API    API

	Archive Archive

	LogLevel        string
	LogFormat       string
	ShutdownTimeout time.Duration
}

// Kafka has the settings kafka.*: the brokers, the group, and how to connect.
type Kafka struct {
	Brokers        []string // host:port
	Topics         []string
	Group          string
	BansTopic      string // empty: no bans
	FinalTopic     string // empty: final windows are not published
	FetchBytes     int64
	SessionTimeout time.Duration
	Timeout        time.Duration // of one call
	TLS            TLS
	SASL           SASL
}

// Read returns the topics to read: those of events, and that of bans.
func (k *Kafka) Read() []string {
	all := slices.Clone(k.Topics)
	if k.BansTopic != "" {
		all = append(all, k.BansTopic)
	}
	return all
}

// PublishedTopic returns the topic that records which windows were published to FinalTopic; empty if FinalTopic
// is.
func (k *Kafka) PublishedTopic() string {
	if k.FinalTopic == "" {
		return ""
	}
	return k.FinalTopic + publishedSuffix
}

// API has the settings api.*: the HTTP API, who may use it, and its limits.
type API struct {
	Listen     string // host:port, or off
	TokensFile string // empty: no authentication
	// BansTokensFile has the tokens for bans; empty: no bans through the API.
	BansTokensFile string
	Origins        []string
	Hosts          []string
	TrustedProxies []string // parsed by Proxies
	Requests       int64
	Streams        int64
	Timeout        time.Duration
}

// Archive has the settings archive.*: the database of final windows and backups.
type Archive struct {
	URL      string // empty: no archive
	URLFile  string
	Interval time.Duration // of backups; 0: none
}

// ArchiveInterval is the default of archive.interval.
const ArchiveInterval = 24 * time.Hour

// Redis has the settings redis.*: one server, a cluster, or a master that Sentinels monitor.
type Redis struct {
	Addresses        []string // host:port
	Cluster          bool
	Sentinel         Sentinel
	Username         string
	Password         string
	PasswordFile     string
	DB               int64
	Prefix           string
	Shards           int64
	Timeout          time.Duration // of one call
	AssumeNoeviction bool
	TLS              TLS
}

// Sentinel has the settings redis.sentinel.*. Without a master, Sentinels are not used.
type Sentinel struct {
	Master       string
	Username     string
	Password     string
	PasswordFile string
}

// Period has the settings of one of periods.*.
type Period struct {
	Name      periods.Period
	Enabled   bool
	Layout    string // a codec.Kind
	Retention time.Duration
	Lateness  *time.Duration // nil: Config.Lateness
	Own       *OwnPeriod     // nil: a built-in period
}

// Defaults returns the configuration with all default values.
func Defaults() *Config {
	cfg, _ := defaults()
	return cfg
}

// defaults returns the default configuration and the options that write to it, including those of the
// operator's own periods.
func defaults(own ...periods.Period) (*Config, []option) {
	cfg := &Config{}
	all := options(cfg, own...)
	for _, o := range all {
		if err := o.value.set(o.def); err != nil {
			panic("default of " + o.Key + " " + err.Error())
		}
	}
	return cfg, all
}

// Name returns a one-line description of the configured Redis.
func (c *Redis) Name() string {
	at := strings.Join(c.Addresses, ", ")
	switch {
	case c.Sentinel.Master != "":
		return fmt.Sprintf("Redis %s of the Sentinels at %s", c.Sentinel.Master, at)
	case c.Cluster || len(c.Addresses) > 1:
		return "Redis Cluster at " + at
	}
	return "Redis at " + at
}
