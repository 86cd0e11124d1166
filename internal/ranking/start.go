package ranking

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
)

// State reads what Redis holds beside the boards, as of one moment.
func (s *Store) State(ctx context.Context) (ledger.State, error) {
	args := []any{nil, nil, nil, s.keys.ledger(), s.keys.schema(), s.keys.origin(), s.keys.windows(), s.keys.workers(), s.keys.hold()}
	asked := time.Now()
	reply, err := s.run(ctx, stateScript, 6, args)
	if err != nil {
		return ledger.State{}, fmt.Errorf("read the ledger of %q: %w", s.prefix, err)
	}
	if len(reply) != 7 {
		return ledger.State{}, faultf("read the ledger of %q: an unexpected reply of %d elements", s.prefix, len(reply))
	}
	schema, _ := reply[0].(string)
	st, err := beside(schema, reply[1], reply[2], reply[3], reply[5])
	if err != nil {
		return ledger.State{}, fmt.Errorf("read the ledger of %q: %w", s.prefix, err)
	}
	windows, _ := reply[4].(int64)
	held, _ := reply[6].(int64)
	st.Windows, st.Held, st.Asked = int(windows), held == 1, asked
	return st, nil
}

// beside reads what stands beside the scores, as scripts return it. Of what wasn't asked
// for, nil, there is nothing.
func beside(schema string, now, positions, origins, workers any) (ledger.State, error) {
	text, ok := now.(string)
	ms, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return ledger.State{}, faultf("an unexpected reply: %v for the time", now)
	}
	st := ledger.State{Schema: schema, Now: time.UnixMilli(ms)}
	for _, one := range []struct {
		reply any
		into  *map[string]string
	}{{positions, &st.Ledger}, {origins, &st.Origins}, {workers, &st.Workers}} {
		if one.reply == nil {
			*one.into = map[string]string{}
		} else if *one.into, err = fields(one.reply); err != nil {
			return ledger.State{}, err
		}
	}
	st.Refills, err = takeRefills(st.Workers)
	return st, err
}

// takeRefills takes what start.lua wrote beside the workers' lines out of them.
func takeRefills(workers map[string]string) (map[string]int64, error) {
	refills := map[string]int64{}
	for name, text := range workers {
		field, ok := strings.CutPrefix(name, "refill:")
		if !ok {
			continue
		}
		to, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, faultf("%s is refilled up to %q, which is no offset", field, clip(text))
		}
		refills[field] = to
		delete(workers, name)
	}
	return refills, nil
}

// fields reads a hash as HGETALL gives it to a script.
func fields(reply any) (map[string]string, error) {
	list, ok := reply.([]any)
	if !ok || len(list)%2 != 0 {
		return nil, faultf("an unexpected reply: %T for a hash", reply)
	}
	words, err := texts(list)
	if err != nil {
		return nil, err
	}
	m := make(map[string]string, len(words)/2)
	for i := 0; i < len(words); i += 2 {
		m[words[i]] = words[i+1]
	}
	return m, nil
}

// CheckSchema says what differs between the schema found in Redis and the
// configuration's; nothing where Redis has none yet.
func (s *Store) CheckSchema(found string) error {
	if found == "" || found == s.schema {
		return nil
	}
	return &SchemaError{Prefix: s.prefix, Wanted: s.schema, Found: found}
}

// Begin writes where partitions start, all or none. Another schema in Redis is
// *SchemaError.
func (s *Store) Begin(ctx context.Context, all []ledger.Beginning) (ledger.Begun, error) {
	if len(all) == 0 {
		return ledger.Began, nil
	}
	args := []any{nil, nil, nil, s.keys.ledger(), s.keys.schema(), s.keys.origin(), s.keys.windows(), s.keys.hold(), s.keys.workers(), s.schema, s.lease}
	for _, b := range all {
		origin := ""
		if b.Origin != nil {
			origin = b.Origin.String()
		} else if s.lease != "" {
			return 0, faultf("set where %s/%d starts in a rebuild: no origin is given", b.Topic, b.Partition)
		}
		found := b.Found
		if b.Beside {
			found = besideOthers
		}
		refill := ""
		if b.Refill > b.At.From {
			refill = strconv.FormatInt(b.Refill, 10)
		}
		args = append(args, ledger.Field(b.Topic, b.Partition), found, b.At.String(), origin, refill)
	}
	reply, err := s.run(ctx, startScript, 6, args)
	if err != nil {
		return 0, fmt.Errorf("set where %s starts: %w", all[0].Topic, err)
	}
	words, err := texts(reply)
	if err != nil {
		return 0, fmt.Errorf("set where %s starts: %w", all[0].Topic, err)
	}
	if len(words) == 2 && words[0] == "schema" {
		return 0, &SchemaError{Prefix: s.prefix, Wanted: s.schema, Found: words[1]}
	}
	if len(words) > 0 {
		if begun, ok := begun[words[0]]; ok {
			return begun, nil
		}
	}
	return 0, faultf("set where %s starts: an unexpected reply %q", all[0].Topic, words)
}

// besideOthers is expected of a ledger that holds nothing of a partition, and something
// of others.
const besideOthers = "beside others"

var begun = map[string]ledger.Begun{
	"applied": ledger.Began, "moved": ledger.Overtaken, "held": ledger.HeldUp, "orphaned": ledger.Orphaned,
}

// Position reads a partition's place in the ledger: its text, empty where there
// is none.
func (s *Store) Position(ctx context.Context, topic string, partition int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	text, err := s.client.HGet(ctx, s.keys.ledger(), ledger.Field(topic, partition)).Result()
	if err == redis.Nil { //nolint:errorlint // within another error it is another's: a Sentinel's that knows no master
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the position of %s/%d: %w", topic, partition, err)
	}
	return text, nil
}

// Report writes a worker's line for status, a JSON object, with Redis's time before its
// first field, and returns the line that it replaces, empty where there is none. Nothing is
// decided by it.
func (s *Store) Report(ctx context.Context, topic string, partition int, line string) (replaced string, err error) {
	reply, err := s.run(ctx, reportScript, 1, []any{nil, nil, nil, s.keys.workers(), ledger.Field(topic, partition), line})
	if err != nil {
		return "", fmt.Errorf("report %s/%d: %w", topic, partition, err)
	}
	replaced, ok := one(reply).(string)
	if !ok {
		return "", faultf("report %s/%d: an unexpected reply %v", topic, partition, reply)
	}
	return replaced, nil
}
