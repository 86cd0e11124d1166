package redissim

// The commands that the consumer sends, directly or from a script, and those with which tests inspect and corrupt
// data. Any other command is an error, as in a Redis that is too old for it.

import (
	"math"
	"strconv"
	"strings"
	"time"
)

var commands map[string]command

func init() { // in init, since EVAL is a command and scripts call commands
	commands = map[string]command{
		"auth":    {do: func(*tx, []string) any { return ok }, least: 1, most: 2, alone: true},
		"client":  {do: client, least: 1, most: -1, alone: true},
		"config":  {do: config, least: 2, most: -1, alone: true},
		"eval":    {do: eval, least: 2, most: -1, alone: true},
		"evalsha": {do: evalsha, least: 2, most: -1, alone: true},
		"hello":   {do: hello, most: -1, alone: true},
		"info":    {do: info, most: -1},
		"ping":    {do: func(*tx, []string) any { return Status("PONG") }},
		"script":  {do: scripts, least: 1, most: -1, alone: true},
		"select":  {do: func(_ *tx, a []string) any { return when(a[0] == "0", ok, "ERR DB index is out of range") }, least: 1},
		"time":    {do: clock},

		"exists":    {do: exists, least: 1, most: -1},
		"del":       {do: del, least: 1, most: -1, write: true},
		"unlink":    {do: del, least: 1, most: -1, write: true},
		"rename":    {do: rename, least: 2, write: true},
		"type":      {do: typeOf, least: 1},
		"object":    {do: object, least: 2},
		"keys":      {do: keysLike, least: 1},
		"scan":      {do: scan, least: 1, most: -1},
		"dbsize":    {do: func(t *tx, _ []string) any { return int64(len(t.all())) }},
		"flushall":  {do: func(t *tx, _ []string) any { clear(t.keys); return ok }, most: 1, write: true},
		"pexpire":   {do: pexpire, least: 2, write: true},
		"pexpireat": {do: pexpireat, least: 2, write: true},
		"persist":   {do: persist, least: 1, write: true},
		"pttl":      {do: pttl, least: 1},

		"get":   {do: get, least: 1},
		"set":   {do: set, least: 2, most: -1, write: true, grows: true},
		"lpush": {do: lpush, least: 2, most: -1, write: true, grows: true},

		"hget":    {do: hget, least: 2},
		"hmget":   {do: hmget, least: 2, most: -1},
		"hset":    {do: hset, least: 3, most: -1, write: true, grows: true},
		"hdel":    {do: hdel, least: 2, most: -1, write: true},
		"hlen":    {do: hlen, least: 1},
		"hgetall": {do: hgetall, least: 1},
		"hkeys":   {do: hkeys, least: 1},
		"hscan":   {do: hscan, least: 2, most: 6},

		"zadd":      {do: zadd, least: 3, most: -1, write: true, grows: true},
		"zincrby":   {do: zincrby, least: 3, write: true, grows: true},
		"zrem":      {do: zrem, least: 2, most: -1, write: true},
		"zcard":     {do: zcard, least: 1},
		"zcount":    {do: zcount, least: 3},
		"zscore":    {do: zscore, least: 2},
		"zmscore":   {do: zmscore, least: 2, most: -1},
		"zrank":     {do: func(t *tx, a []string) any { return zrank(t, a, false) }, least: 2},
		"zrevrank":  {do: func(t *tx, a []string) any { return zrank(t, a, true) }, least: 2},
		"zrange":    {do: func(t *tx, a []string) any { return zrange(t, a, false) }, least: 3, most: 4},
		"zscan":     {do: zscan, least: 2, most: 6},
		"zrevrange": {do: func(t *tx, a []string) any { return zrange(t, a, true) }, least: 3, most: 4},
	}
}

const (
	errSyntax  = Error("ERR syntax error")
	errInteger = Error("ERR value is not an integer or out of range")
	errFloat   = Error("ERR value is not a valid float")
	errBound   = Error("ERR min or max is not a float")
)

func when(yes bool, reply any, text string) any {
	if yes {
		return reply
	}
	return Error(text)
}

func integer(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// --- the connection and the server ----------------------------------------------

func hello(t *tx, a []string) any {
	if len(a) > 0 {
		proto, err := strconv.Atoi(a[0])
		if err != nil || proto != 2 && proto != 3 {
			return Error("NOPROTO unsupported protocol version")
		}
		t.session.proto = proto
	}
	return Map{
		"server", "redis", "version", "7.0.15", "proto", int64(t.session.proto), "id", int64(t.session.number),
		"mode", "standalone", "role", "master", "modules", []any{},
	}
}

func client(_ *tx, a []string) any {
	switch strings.ToLower(a[0]) {
	case "setname", "setinfo":
		return ok
	}
	return Error("ERR unknown subcommand '" + a[0] + "'.")
}

func config(t *tx, a []string) any {
	if strings.ToLower(a[0]) == "get" && len(a) == 2 {
		if strings.EqualFold(a[1], "maxmemory-policy") {
			return Map{"maxmemory-policy", t.Policy}
		}
		return Map{}
	}
	return Error("ERR unknown subcommand or wrong number of arguments for '" + a[0] + "'.")
}

func info(t *tx, _ []string) any {
	return "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:" + t.process.id() + "\r\n" +
		"# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:" + t.Policy + "\r\n"
}

func clock(t *tx, _ []string) any {
	now := t.now()
	return []any{strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / int(time.Microsecond))}
}

// --- keys -------------------------------------------------------------------------

func exists(t *tx, a []string) any {
	n := int64(0)
	for _, key := range a {
		n += integer(t.look(key) != nil)
	}
	return n
}

func del(t *tx, a []string) any {
	n := int64(0)
	for _, key := range a {
		n += integer(t.look(key) != nil)
		delete(t.keys, key)
	}
	return n
}

func rename(t *tx, a []string) any {
	v := t.look(a[0])
	if v == nil {
		return Error("ERR no such key")
	}
	delete(t.keys, a[0])
	t.keys[a[1]] = v
	return ok
}

func typeOf(t *tx, a []string) any {
	if v := t.look(a[0]); v != nil {
		return Status(v.kind)
	}
	return Status("none")
}

// keysLike returns the keys that match a pattern, which must be a key or end in a star.
func keysLike(t *tx, a []string) any {
	prefix, starred := strings.CutSuffix(a[0], "*")
	if strings.ContainsAny(prefix, `*?[\`) {
		return Error("ERR this Redis knows no patterns but a star at the end")
	}
	found := []any{}
	for _, key := range t.all() {
		if key == a[0] || starred && strings.HasPrefix(key, prefix) {
			found = append(found, key)
		}
	}
	return found
}

// object returns Redis's encoding of a sorted set: listpack for small ones.
func object(t *tx, a []string) any {
	v := t.look(a[1])
	switch {
	case !strings.EqualFold(a[0], "encoding"):
		return errSyntax
	case v == nil:
		return nil
	case v.kind == zsetKind && len(v.zset.scores) > 128:
		return "skiplist"
	}
	return "listpack"
}

// scan returns all keys in one page.
func scan(t *tx, a []string) any {
	pattern := "*"
	for i := 1; i+1 < len(a); i += 2 {
		if strings.EqualFold(a[i], "match") {
			pattern = a[i+1]
		}
	}
	found := keysLike(t, []string{pattern})
	if _, failed := found.(Error); failed {
		return found
	}
	return []any{"0", found}
}

func pexpire(t *tx, a []string) any {
	ms, err := strconv.ParseInt(a[1], 10, 64)
	if err != nil {
		return errInteger
	}
	return t.expireAt(a[0], t.ms+ms)
}

func pexpireat(t *tx, a []string) any {
	at, err := strconv.ParseInt(a[1], 10, 64)
	if err != nil {
		return errInteger
	}
	return t.expireAt(a[0], at)
}

// expireAt sets when a key expires; a time in the past removes it.
func (t *tx) expireAt(key string, at int64) any {
	v := t.look(key)
	if v == nil {
		return int64(0)
	}
	if at <= t.ms {
		delete(t.keys, key)
		return int64(1)
	}
	t.own(key, v).expires = at
	return int64(1)
}

func persist(t *tx, a []string) any {
	v := t.look(a[0])
	if v == nil || v.expires == 0 {
		return int64(0)
	}
	t.own(a[0], v).expires = 0
	return int64(1)
}

func pttl(t *tx, a []string) any {
	switch v := t.look(a[0]); {
	case v == nil:
		return int64(-2)
	case v.expires == 0:
		return int64(-1)
	default:
		return v.expires - t.ms
	}
}

// --- strings, and lists, which tests use as values of the wrong kind ---------------------

func get(t *tx, a []string) any {
	v, failed := t.read(a[0], textKind)
	if failed != nil || v == nil {
		return failed
	}
	return v.text
}

func set(t *tx, a []string) any {
	expires, absent := int64(0), false
	for i := 2; i < len(a); i++ {
		option := strings.ToLower(a[i])
		switch {
		case option == "nx":
			absent = true
		case (option == "px" || option == "ex") && i+1 < len(a):
			i++
			n, err := strconv.ParseInt(a[i], 10, 64)
			if err != nil {
				return errInteger
			}
			if n <= 0 {
				return Error("ERR invalid expire time in 'set' command")
			}
			if option == "ex" {
				n *= 1000
			}
			expires = t.ms + n
		default:
			return errSyntax
		}
	}
	if absent && t.look(a[0]) != nil {
		return nil
	}
	t.keys[a[0]] = &value{kind: textKind, text: a[1], expires: expires}
	return ok
}

func lpush(t *tx, a []string) any {
	v, failed := t.write(a[0], listKind)
	if failed != nil {
		return failed
	}
	for _, e := range a[1:] {
		v.list = append([]string{e}, v.list...)
	}
	return int64(len(v.list))
}

// --- numbers ------------------------------------------------------------------------

// parseScore parses a score like ZADD.
func parseScore(text string) (float64, bool) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) || math.IsNaN(f) || strings.ContainsAny(text, "_ ") {
		return 0, false
	}
	return f, true
}
