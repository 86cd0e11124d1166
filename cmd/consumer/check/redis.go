package check

// judgeRedis checks the Redis servers: each master separately, then the shards, rights and standings.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/units"
)

func judgeRedis(f *redisFacts, topics []string) []finding {
	s := &section{name: sectionRedis}
	if f.err != nil {
		judgeAway(s, "", f.err, "see that redis.addresses names it, and that it runs")
		s.unchecked("rights, schema, ledger", "", "Redis cannot be used", "")
		return s.all
	}
	for i := range f.servers {
		judgeServer(s, f, &f.servers[i])
	}
	judgeShards(s, f)
	judgeRights(s, f.rights)
	judgeStandings(s, f, topics)
	return s.all
}

// judgeAway reports a server that cannot be used.
func judgeAway(s *section, subject string, err error, todo string) {
	if errors.As(err, new(*redisconn.ServerMismatchError)) { // the error already names the setting to change
		todo = "see docs/security.md"
	}
	s.wrong("server", subject, err.Error(), todo)
}

func judgeServer(s *section, f *redisFacts, m *serverFacts) {
	if m.err != nil {
		judgeAway(s, m.address, m.err, "see that it runs, and can be reached from here")
		return
	}
	judgeVersion(s, f, m)
	judgeEviction(s, m)
	if len(m.info) == 0 {
		s.unchecked("memory, persistence", m.address, "this user may not ask by INFO", "let it (ACL SETUSER … +info), or check it yourself")
	} else {
		judgeMemory(s, m)
		judgePersistence(s, m)
	}
	judgeLazyfree(s, m)
	judgeClock(s, m)
}

// oldestRedis is the oldest version that has all commands and options that the scripts use.
var oldestRedis = []int{6, 2}

func judgeVersion(s *section, f *redisFacts, m *serverFacts) {
	const check = "server"
	name, version := "Redis", m.info["redis_version"]
	if v := m.info["valkey_version"]; v != "" {
		name, version = "Valkey", v
	}
	text := f.kind
	if f.db != 0 {
		text += fmt.Sprintf(", database %d", f.db)
	}
	if version == "" {
		s.unchecked(check, m.address, text+", version not reported", "make sure that it is Redis 6.2 or later, or Valkey")
		return
	}
	text = fmt.Sprintf("%s %s, %s", name, version, text)
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	switch old := n == 2 && slices.Compare([]int{major, minor}, oldestRedis) < 0; {
	case name == "Redis" && old:
		s.wrong(check, m.address, text, "use Redis 6.2 or later, or Valkey")
	case m.info["role"] == "slave":
		s.wrong(check, m.address, text+"; a replica, which takes no writes", "name its master, or the Sentinels, in redis.addresses")
	case m.info["loading"] == "1":
		s.warn(check, m.address, text+"; still loading its data", "wait")
	default:
		s.ok(check, m.address, text)
	}
}

func judgeEviction(s *section, m *serverFacts) {
	const check = "eviction"
	wrong, evicts := errors.AsType[*redisconn.EvictionError](m.eviction)
	switch {
	case evicts && wrong.Policy == "":
		s.wrong(check, m.address, "Redis does not report its maxmemory-policy", "if it is noeviction, set redis.assume_noeviction: true")
	case evicts:
		s.wrong(check, m.address, "maxmemory-policy "+wrong.Policy+": it may drop a board or the ledger alone", "CONFIG SET maxmemory-policy noeviction, and in its file")
	case m.eviction != nil:
		s.unchecked(check, m.address, m.eviction.Error(), "")
	case m.info["maxmemory_policy"] == "" && m.settings["maxmemory-policy"] == "":
		s.warn(check, m.address, "not reported; redis.assume_noeviction states that it is noeviction", "check that it is")
	default:
		s.ok(check, m.address, "noeviction")
	}
}

// fullShare is the share of maxmemory above which check warns.
const fullShare = 0.8

func judgeMemory(s *section, m *serverFacts) {
	const check = "memory"
	used, err := strconv.ParseInt(m.info["used_memory"], 10, 64)
	limit, _ := strconv.ParseInt(m.info["maxmemory"], 10, 64)
	of := fmt.Sprintf("%s used of maxmemory %s", units.ShortBytes(used), units.ShortBytes(limit))
	switch {
	case err != nil:
		s.unchecked(check, m.address, "not reported by INFO", "")
	case limit <= 0:
		s.ok(check, m.address, units.ShortBytes(used)+" used, no maxmemory: the machine's memory is the limit")
	case float64(used) > fullShare*float64(limit):
		s.warn(check, m.address, fmt.Sprintf("%s (%d %%)", of, used*100/limit), "raise maxmemory, or shorten retentions: at the limit ingestion stops")
	default:
		s.ok(check, m.address, of)
	}
}

func judgePersistence(s *section, m *serverFacts) {
	const check = "persistence"
	aof := m.info["aof_enabled"] == "1"
	save, known := m.settings["save"]
	var ways []string
	if aof {
		ways = append(ways, "AOF, appendfsync "+cmp.Or(m.settings["appendfsync"], "unknown"))
	}
	if save != "" {
		ways = append(ways, "RDB, save "+save)
	}
	switch {
	case m.info["aof_enabled"] == "":
		s.unchecked(check, m.address, "not reported by INFO", "")
	case m.info["rdb_last_bgsave_status"] == "err" && (save != "" || !known), aof && m.info["aof_last_write_status"] == "err":
		s.warn(check, m.address, "the last write to disk failed: Redis may refuse writes until one works", "see its log: disk, rights, memory for the fork")
	case !aof && save == "" && known:
		s.warn(check, m.address, "neither AOF nor RDB: after a restart every live window is read again from the log, as far as that reaches back",
			"CONFIG SET appendonly yes, and in its file")
	case !aof && !known:
		s.unchecked(check, m.address, "no AOF; whether it saves RDB files, this user may not ask by CONFIG", "check that it does")
	default:
		s.ok(check, m.address, strings.Join(ways, "; "))
	}
}

func judgeLazyfree(s *section, m *serverFacts) {
	const check = "lazyfree"
	var off []string
	for _, name := range []string{"lazyfree-lazy-expire", "lazyfree-lazy-server-del"} {
		if m.settings[name] == "no" {
			off = append(off, name)
		}
	}
	switch _, known := m.settings["lazyfree-lazy-expire"]; {
	case !known:
		s.unchecked(check, m.address, "this user may not use CONFIG, or the server does not report it", "see that lazyfree-lazy-expire is yes")
	case len(off) > 0:
		s.warn(check, m.address, strings.Join(off, " and ")+" no: the end of a board of a million members blocks Redis for half a second",
			"set to yes, by CONFIG SET and in its file")
	default:
		s.ok(check, m.address, "expiry of large boards does not block")
	}
}

// clockApart is the difference between clocks above which check warns.
const clockApart = time.Second

func judgeClock(s *section, m *serverFacts) {
	const check = "clock"
	apart := max(m.ahead, -m.ahead)
	if apart-m.within <= clockApart {
		s.ok(check, m.address, "within "+units.ShortDuration((apart+m.within).Truncate(time.Millisecond)+time.Millisecond)+" of this machine's")
		return
	}
	than := "ahead of"
	if m.ahead < 0 {
		than = "behind"
	}
	s.warn(check, m.address, fmt.Sprintf("%s %s this machine's: windows end by Redis's clock, and events are judged by the brokers' and producers'",
		units.ShortDuration(apart.Truncate(time.Millisecond)), than), "set the clocks by NTP")
}

func judgeRights(s *section, err error) {
	const check = "rights"
	switch missing, ok := errors.AsType[*redisconn.RightsError](err); {
	case err == nil:
		s.ok(check, "", "every command that the scripts use was tried, on scratch keys")
	case ok && missing.Command == "":
		s.wrong(check, "", fmt.Sprintf("this user may not use the keys of redis.prefix: %v", missing.Err), fmt.Sprintf("ACL SETUSER … ~%s:*", missing.Prefix))
	case ok:
		s.wrong(check, "", fmt.Sprintf("this user may not run %s: %v", missing.Command, missing.Err), "ACL SETUSER … +"+strings.ToLower(missing.Command))
	default:
		s.wrong(check, "", err.Error(), "fix the cause that Redis reports")
	}
}

// judgeShards checks the slots of a cluster, and the shards if there are several.
func judgeShards(s *section, f *redisFacts) {
	const check = "slots"
	if f.number != "" {
		s.warn("shards", "", f.number, "")
	}
	switch {
	case !f.cluster:
	case f.gapsErr != nil:
		s.unchecked(check, "", f.gapsErr.Error(), "")
	case len(f.gaps) == 0:
		s.ok(check, "", "the cluster serves all of its slots")
	}
	for _, gap := range f.gaps {
		s.wrong(check, "", gap, "see that every slot has a master, and that each of them runs (redis-cli --cluster check)")
	}
	if len(f.states) <= 1 {
		return
	}
	for _, problem := range f.problems {
		s.wrong("shards", "", problem, "see that its master runs, and can be reached from here")
	}
	var empty []string
	known := map[string]bool{}
	for _, r := range f.shards {
		if r.Problem != nil && r.Ledger != nil {
			empty = append(empty, fmt.Sprint(r.Shard))
		}
		if r.Master != nil {
			known[*r.Master] = true
		}
	}
	switch {
	case len(f.problems) > 0:
	case len(empty) > 0:
		s.warn("shards", "", fmt.Sprintf("of %d shards these are empty, while others are not: %s", len(f.states), units.Names(empty)),
			"if a master was lost, restore its backup, or let them be read again")
	default:
		s.ok("shards", "", fmt.Sprintf("%d, on %s", len(f.states), units.Plural(int64(max(1, len(known))), "server")))
	}
}
