package config

// The validation of a configuration: each setting alone, then settings together. It finds every problem, not
// only the first.

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// The kinds of problems of a setting. A settingError has one of them, and all of them wrap ErrInvalid.
var (
	ErrInvalid = errors.New("invalid configuration")
	errUnknown = fmt.Errorf("%w: no such setting", ErrInvalid)
	errType    = fmt.Errorf("%w: wrong type", ErrInvalid)
	errRange   = fmt.Errorf("%w: out of range", ErrInvalid)
)

// settingError is one problem with one setting. found is empty if the problem is not its value.
type settingError struct {
	kind    error
	key     string
	found   string
	problem string
	from    Origin
}

func (e *settingError) Error() string {
	found := e.found
	if found != "" {
		found += " "
	}
	key := e.key
	if !plainName.MatchString(key) {
		key = strconv.Quote(key)
	}
	return terminal.Harmless(fmt.Sprintf("%s: %s%s (%s)", key, found, e.problem, e.from))
}

// plainName matches a name that cannot be confused with the text around it. A mistyped name can be anything:
// empty, a colon, a word and a blank.
var plainName = regexp.MustCompile(`^[\pL\pN_.-]+$`)

func (e *settingError) Unwrap() error { return e.kind }

// validate returns all problems, including those of reading, joined, one per line; nil if there are none.
func (l *Loaded) validate() error {
	problems := slices.Clone(l.problems)
	for _, s := range l.Settings {
		if err := s.value.check(); err != nil {
			problems = append(problems, &settingError{kind: errRange, key: s.Key, found: s.Shown(), problem: err.Error(), from: s.From})
		}
	}
	if len(problems) == 0 {
		// Checks of several settings are only useful once each setting is valid by itself.
		problems = l.validateTogether()
	}
	return l.withoutSecrets(problems)
}

func (l *Loaded) validateTogether() []*settingError {
	var problems []*settingError
	complain := func(key, problem string, args ...any) {
		s := l.setting(key)
		problems = append(problems, &settingError{kind: errRange, key: key, found: s.Shown(), problem: fmt.Sprintf(problem, args...), from: s.From})
	}
	cfg := l.Config
	for _, topic := range cfg.Kafka.Topics {
		for _, other := range cfg.Kafka.Topics {
			if other == event.DeadLetterTopic(topic) {
				complain("kafka.topics", "contains %s, the dead-letter topic of %s: dead letters would be read as events", other, topic)
			}
		}
	}
	if use := otherUse(cfg, cfg.Kafka.BansTopic); use != "" {
		complain("kafka.bans_topic", "must not be %s", use)
	}
	validateFinalTopic(cfg, complain)
	if file := cfg.API.BansTokensFile; file != "" && filepath.Clean(file) == filepath.Clean(cfg.API.TokensFile) {
		complain("api.bans_tokens_file", "must not be api.tokens_file: every reader could ban")
	}
	if url := cfg.Archive.URL; url != "" {
		switch scheme, _, _ := strings.Cut(url, ":"); {
		case !slices.Contains([]string{"sqlite", "postgres", "postgresql"}, scheme):
			complain("archive.url", "must be sqlite:path or postgres://user:password@host/database")
		case !cfg.Seal:
			complain("archive.url", "requires seal: true, since only final windows are archived")
		}
	}
	switch every := cfg.Archive.Interval; {
	case cfg.Archive.URL == "" && every != ArchiveInterval && every != 0:
		complain("archive.interval", "requires archive.url")
	case every > 0 && every < time.Minute:
		complain("archive.interval", "must be 0 (no backups) or at least a minute")
	}
	validateRedisKind(&cfg.Redis, complain)
	validateTLS("kafka", &cfg.Kafka.TLS, complain)
	validateSASL(&cfg.Kafka.SASL, complain)
	validateTLS("redis", &cfg.Redis.TLS, complain)
	if _, err := event.NewFields(cfg.Fields, cfg.Others...); err != nil {
		if wrong, ok := errors.AsType[*event.PathError](err); ok {
			complain("event.fields."+wrong.Field, "%s", wrong.Problem)
		}
	}
	if least := memory.LeastMemory(cfg.MaxEventBytes); cfg.FoldMemory < least {
		complain("fold_memory", "is too small for max_event_bytes %s: set it to at least %dMiB",
			units.ShortBytes(cfg.MaxEventBytes), least/units.MiB)
	}
	before := len(problems)
	validateOwn(cfg, complain)
	if len(problems) > before {
		return problems // the windows of an invalid period are not known
	}
	enabled := 0
	for _, p := range cfg.Periods {
		if !p.Enabled {
			continue
		}
		enabled++
		if _, err := cfg.Layout(p); err != nil {
			complain("periods."+string(p.Name)+".layout", "does not fit max_points %d: %v", cfg.MaxPoints, err)
		}
	}
	if _, wrong := cfg.ruled(); len(wrong) > 0 {
		for _, problem := range wrong {
			problems = append(problems, &settingError{kind: errRange, key: "boards", problem: problem, from: l.setting("boards").From})
		}
	}
	if enabled == 0 {
		complain("periods."+string(cfg.Periods[0].Name)+".enabled", "and all other periods are disabled: enable at least one")
	}
	return problems
}

// validateRedisKind checks that the settings for one server, a cluster and Sentinels go together.
func validateRedisKind(c *Redis, complain func(key, problem string, args ...any)) {
	switch several := len(c.Addresses) > 1; {
	case c.Sentinel.Master != "" && c.Cluster:
		complain("redis.cluster", "and redis.sentinel.master exclude each other")
	case c.Sentinel.Master == "" && several && c.DB != 0:
		complain("redis.db", "must be 0 for a cluster (several redis.addresses)")
	case c.Cluster && c.DB != 0:
		complain("redis.db", "must be 0 for a cluster")
	}
	if c.Sentinel.Master == "" && c.Sentinel.Username != "" {
		complain("redis.sentinel.username", "requires redis.sentinel.master")
	}
	if c.Sentinel.Master == "" && c.Sentinel.Password != "" {
		complain("redis.sentinel.password", "requires redis.sentinel.master")
	}
}

const (
	publishedSuffix = ".done"
	nameForm        = "1 to 64 letters, digits, `.`, `_` or `-`, the first a letter or digit"
)

var (
	topicPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)
	hostPattern  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

	layouts  = []string{string(codec.Readable), string(codec.Wide)}
	weekdays = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
)

// CheckTopic accepts the names that Kafka accepts, but leaves room for the dead letters' suffix within Kafka's
// limit of 249 bytes.
func CheckTopic(name string) error {
	if !topicPattern.MatchString(name) || len(event.DeadLetterTopic(name)) > 249 || strings.Trim(name, ".") == "" {
		return errors.New("is not a topic name: use 1 to 245 letters, digits, `.`, `_` or `-`")
	}
	return nil
}

// validateFinalTopic refuses a topic for final windows if it, or the topic that records what is published, is
// used for something else.
func validateFinalTopic(cfg *Config, complain func(key, problem string, args ...any)) {
	const key = "kafka.final_topic"
	final := cfg.Kafka.FinalTopic
	if final == "" {
		return
	}
	if !cfg.Seal {
		complain(key, "requires seal: true, since only final windows are published")
	}
	if most := 249 - len(publishedSuffix); len(final) > most {
		complain(key, "has %d characters, at most %d are possible: its name with %s is another topic", len(final), most, publishedSuffix)
	}
	for name, says := range map[string]string{
		final: "must not be", cfg.Kafka.PublishedTopic(): "also uses " + cfg.Kafka.PublishedTopic() + ", which must not be",
	} {
		use := otherUse(cfg, name)
		if name == cfg.Kafka.BansTopic {
			use = "kafka.bans_topic"
		}
		if use != "" {
			complain(key, "%s %s", says, use)
		}
	}
}

// otherUse returns what events use a topic for; empty if they do not use it.
func otherUse(cfg *Config, name string) string {
	for _, topic := range cfg.Kafka.Topics {
		switch name {
		case topic:
			return "one of kafka.topics"
		case event.DeadLetterTopic(topic):
			return "the dead-letter topic of " + topic
		}
	}
	return ""
}

func fieldPath(path string) error {
	if path == "" {
		return errors.New("is empty: remove it to use the field's own name")
	}
	return event.CheckPath(path)
}

func groupName(name string) error {
	if name == "" || len(name) > 255 {
		return errors.New("must be 1 to 255 bytes long")
	}
	return nil
}

// CheckPrefix checks the form of a prefix. Its error continues a sentence that starts with the name, like those
// of the other checks.
func CheckPrefix(name string) error {
	if !namePattern.MatchString(name) {
		return errors.New("must be " + nameForm)
	}
	return nil
}

// CheckBoard checks the form of a board's name.
func CheckBoard(name string) error {
	if !namePattern.MatchString(name) {
		return errors.New("is not a board name: use " + nameForm)
	}
	return nil
}

// checkAddress requires host:port, both present.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil && host != "" && plainHost(host) {
		if n, err := strconv.ParseUint(port, 10, 16); err == nil && n > 0 {
			return nil
		}
	}
	return errors.New("is not host:port")
}

// listenAddress accepts a missing host, for all addresses, and port 0.
func listenAddress(address string) error {
	if address == Off {
		return nil
	}
	if host, port, err := net.SplitHostPort(address); err == nil && plainHost(host) {
		if _, err := strconv.ParseUint(port, 10, 16); err == nil {
			return nil
		}
	}
	return errors.New("must be host:port, :port or off")
}

// hostName requires the name of a host, without a port.
func hostName(name string) error {
	if !hostPattern.MatchString(name) {
		return errors.New("must be a host name without a port, such as boards.example")
	}
	return nil
}

// apiOrigin accepts what browsers send as Origin, or *.
func apiOrigin(origin string) error {
	if origin == "*" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return errors.New("must be an origin such as https://shop.example, or *")
	}
	return nil
}

func startName(text string) error {
	switch text {
	case "window", "earliest", "latest":
		return nil
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return errors.New("must be window, earliest, latest, or a time such as 2026-11-21T00:00:00Z")
	}
	return nil
}

func zoneName(name string) error {
	if _, err := periods.NewCalendar(name, weekdays[0]); err != nil {
		return errors.New("is not an IANA time zone such as UTC or Europe/Berlin")
	}
	return nil
}
