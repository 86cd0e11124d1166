package ranking

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
)

// State reads the schema, the ledger and the other keys of the shard that aren't boards, as of one moment.
func (s *Store) State(ctx context.Context) (ledger.State, error) {
	asked := time.Now()
	reply, err := s.Call(ctx, lua.State, s.stateKeys(), stateKinds...)
	return s.state(asked, reply, err)
}

// stateKeys returns the keys that state.lua reads, and stateKinds how it reads each.
func (s *Store) stateKeys() []string {
	k := s.keys
	return []string{k.Schema(), k.Ledger(), k.Origin(), k.Windows(), k.Workers(), k.Hold(), s.rules}
}

var stateKinds = []any{"text", "hash", "hash", "size", "hash", "there", "hash"}

// state parses the reply of state.lua.
func (s *Store) state(asked time.Time, reply []any, err error) (ledger.State, error) {
	if err != nil {
		return ledger.State{}, fmt.Errorf("read the ledger of %q: %w", s.prefix, err)
	}
	if len(reply) != 8 {
		return ledger.State{}, fmt.Errorf("read the ledger of %q: %w", s.prefix, s.OfShard(Unexpected(lua.State, reply)))
	}
	schema, _ := reply[1].(string)
	st, err := beside(schema, reply[0], reply[2], reply[3], reply[5])
	if err != nil {
		return ledger.State{}, fmt.Errorf("read the ledger of %q: %w", s.prefix, s.OfShard(err))
	}
	windows, _ := reply[4].(int64)
	held, _ := reply[6].(int64)
	st.Windows, st.Held, st.Asked = int(windows), held == 1, asked
	rules, err := Fields(reply[7])
	if err != nil {
		return ledger.State{}, fmt.Errorf("read the rules of %q: %w", s.prefix, s.OfShard(err))
	}
	if len(rules) > 0 {
		st.Rules = rules
	}
	return st, nil
}

// beside parses the state of a shard as scripts return it. A nil argument wasn't requested; its part of the
// state is empty.
func beside(schema string, now, positions, origins, workers any) (ledger.State, error) {
	text, ok := now.(string)
	ms, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return ledger.State{}, Faultf("an unexpected reply: %v for the time", now)
	}
	st := ledger.State{Schema: schema, Now: time.UnixMilli(ms)}
	for _, one := range []struct {
		reply any
		into  *map[string]string
	}{{positions, &st.Ledger}, {origins, &st.Origins}, {workers, &st.Workers}} {
		if one.reply == nil {
			*one.into = map[string]string{}
		} else if *one.into, err = Fields(one.reply); err != nil {
			return ledger.State{}, err
		}
	}
	if st.Since, err = TakeSince(st.Origins); err != nil {
		return ledger.State{}, err
	}
	st.Refills, st.Rebuilt, err = takeRefills(st.Workers)
	return st, err
}

// takeRefills removes the refill marks of start.lua and swap.lua from the workers' lines, and returns them.
func takeRefills(workers map[string]string) (refills map[string]int64, rebuilt map[string]bool, err error) {
	refills, rebuilt = map[string]int64{}, map[string]bool{}
	for name, text := range workers {
		field, ok := strings.CutPrefix(name, "refill:")
		if !ok {
			continue
		}
		offset, isRebuilt := strings.CutSuffix(text, " rebuilt")
		to, err := strconv.ParseInt(offset, 10, 64)
		if err != nil {
			return nil, nil, Faultf("%s is refilled up to %q, which is no offset", field, Clip(text))
		}
		refills[field] = to
		if isRebuilt {
			rebuilt[field] = true
		}
		delete(workers, name)
	}
	return refills, rebuilt, nil
}

// CheckSchema returns a *SchemaError if the schema found in Redis differs from the configuration's, and nil
// if Redis has no schema yet. If the schema fits, the store reads and writes with it from then on.
func (s *Store) CheckSchema(found string) error {
	if found == "" || s.adopt(found) {
		return nil
	}
	return s.OfShard(&SchemaError{Prefix: s.prefix, Wanted: s.target(found), Found: found})
}

// Begin writes where partitions start, for all of them or for none. If Redis has another schema, the error
// is a *SchemaError.
func (s *Store) Begin(ctx context.Context, all []ledger.StartPosition) (ledger.StartResult, error) {
	if len(all) == 0 {
		return ledger.Began, nil
	}
	args := []any{s.text(), s.lease}
	for _, b := range all {
		origin := ""
		if b.Origin != nil {
			origin = b.Origin.String()
		} else if s.lease != "" {
			return 0, Faultf("set where %v starts in a rebuild: no origin is given", b.Partition)
		}
		found := b.Found
		if b.Beside {
			found = besideOthers
		}
		refill := ""
		if b.Refill > b.At.From {
			refill = strconv.FormatInt(b.Refill, 10)
		}
		args = append(args, b.Partition.String(), found, b.At.String(), origin, refill)
	}
	k := s.keys
	keys := []string{k.Ledger(), k.Schema(), k.Origin(), k.Windows(), k.Hold(), k.Workers()}
	reply, err := s.Call(ctx, lua.Start, keys, args...)
	if err != nil {
		return 0, fmt.Errorf("set where %s starts: %w", all[0].Partition.Topic, err)
	}
	words, err := Texts(reply)
	if err != nil {
		return 0, fmt.Errorf("set where %s starts: %w", all[0].Partition.Topic, err)
	}
	if len(words) == 2 && words[0] == "schema" {
		return 0, &SchemaError{Prefix: s.prefix, Wanted: s.text(), Found: words[1]}
	}
	if len(words) > 0 {
		if begun, ok := begun[words[0]]; ok {
			return begun, nil
		}
	}
	return 0, fmt.Errorf("set where %s starts: %w", all[0].Partition.Topic, Unexpected(lua.Start, reply))
}

// besideOthers is an expected position: the ledger has nothing of this partition, but has other partitions.
const besideOthers = "beside others"

var begun = map[string]ledger.StartResult{
	"applied": ledger.Began, "moved": ledger.Overtaken, "held": ledger.HeldUp, "orphaned": ledger.Orphaned,
}

// Position reads a partition's position in the ledger, as text. It is empty if the ledger has none.
func (s *Store) Position(ctx context.Context, partition ledger.Partition) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.position(partition, s.client.HGet(ctx, s.keys.Ledger(), partition.String()))
}

func (s *Store) position(partition ledger.Partition, reply *redis.StringCmd) (string, error) {
	text, err := reply.Result()
	if err == redis.Nil { //nolint:errorlint // within another error it is another's: a Sentinel's that knows no master
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the position of %v: %w", partition, s.OfShard(err))
	}
	return text, nil
}

// ForgetRules removes the texts of rules that nothing needs any more, except the caller's own.
func (s *Store) ForgetRules(ctx context.Context, own ledger.Fingerprint) (removed int, err error) {
	reply, err := s.Call(ctx, lua.Forget, []string{s.keys.Rules(), s.keys.Ledger()}, own.String())
	if err != nil {
		return 0, fmt.Errorf("forget rules of %q: %w", s.prefix, err)
	}
	if len(reply) != 2 || reply[0] != "forgotten" {
		return 0, fmt.Errorf("forget rules of %q: %w", s.prefix, Unexpected(lua.Forget, reply))
	}
	n, _ := reply[1].(int64)
	return int(n), nil
}

// Report writes the status lines of workers, which are JSON objects, and inserts Redis's time before the
// first field of each. It returns the lines as stored, and the lines stored before, empty if there was
// none. No decision depends on these lines.
func (s *Store) Report(ctx context.Context, lines []ledger.Line) (stored, before []string, err error) {
	args := make([]any, 0, 3*len(lines))
	for _, l := range lines {
		args = append(args, l.Partition.String(), l.Text, "")
	}
	words, err := s.report(ctx, args)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range lines {
		stored = append(stored, `{"written":`+words[0]+","+l.Text[1:])
	}
	return stored, words[1:], nil
}

// Retract removes the lines that are still stored as given.
func (s *Store) Retract(ctx context.Context, stored []ledger.Line) error {
	args := make([]any, 0, 3*len(stored))
	for _, l := range stored {
		args = append(args, l.Partition.String(), "", l.Text)
	}
	_, err := s.report(ctx, args)
	return err
}

func (s *Store) report(ctx context.Context, args []any) ([]string, error) {
	reply, err := s.Call(ctx, lua.Report, []string{s.keys.Workers()}, args...)
	if err != nil {
		return nil, fmt.Errorf("report to %q: %w", s.prefix, err)
	}
	words, err := Texts(reply)
	if err != nil || len(words) != 1+len(args)/3 {
		return nil, fmt.Errorf("report to %q: %w", s.prefix, Unexpected(lua.Report, reply))
	}
	return words, nil
}
