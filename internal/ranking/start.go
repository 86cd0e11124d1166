package ranking

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
)

// Origin is the offset and the time from which a partition's events are in.
type Origin struct {
	Offset int64
	Time   int64 // ms; 0 from the beginning
}

func (o Origin) String() string { return fmt.Sprintf("%d %d", o.Offset, o.Time) }

func parseOrigin(text string) (Origin, error) {
	offset, at, ok := strings.Cut(text, " ")
	o, err := strconv.ParseInt(offset, 10, 64)
	if err != nil || !ok {
		return Origin{}, fmt.Errorf("origin %q: want an offset and a time", text)
	}
	t, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return Origin{}, fmt.Errorf("origin %q: want an offset and a time", text)
	}
	return Origin{Offset: o, Time: t}, nil
}

// State is what Redis holds beside the boards, as of one moment.
type State struct {
	Schema  string // empty where nothing was written yet
	Now     time.Time
	Ledger  map[string]string // "<topic>/<partition>" -> position
	Origins map[string]string
	Windows int
	Workers map[string]string
	Held    bool
}

// State reads it.
func (s *Store) State(ctx context.Context) (State, error) {
	args := []any{nil, nil, nil, s.keys.ledger(), s.keys.schema(), s.keys.origin(), s.keys.windows(), s.keys.workers(), s.keys.hold()}
	reply, err := s.run(ctx, stateScript, 6, args)
	if err != nil {
		return State{}, fmt.Errorf("read the ledger of %q: %w", s.prefix, err)
	}
	if len(reply) != 7 {
		return State{}, fmt.Errorf("read the ledger of %q: %d elements in a reply of 7", s.prefix, len(reply))
	}
	var st State
	now, ok := reply[1].(string)
	ms, err := strconv.ParseInt(now, 10, 64)
	if !ok || err != nil {
		return State{}, fmt.Errorf("read the ledger of %q: time %v", s.prefix, reply[1])
	}
	st.Now = time.UnixMilli(ms)
	st.Schema, _ = reply[0].(string)
	windows, _ := reply[4].(int64)
	held, _ := reply[6].(int64)
	st.Windows, st.Held = int(windows), held == 1
	for i, into := range map[int]*map[string]string{2: &st.Ledger, 3: &st.Origins, 5: &st.Workers} {
		if *into, err = fields(reply[i]); err != nil {
			return State{}, fmt.Errorf("read the ledger of %q: %w", s.prefix, err)
		}
	}
	return st, nil
}

// fields reads a hash as HGETALL gives it to a script.
func fields(reply any) (map[string]string, error) {
	list, ok := reply.([]any)
	if !ok || len(list)%2 != 0 {
		return nil, fmt.Errorf("an unexpected reply: %T for a hash", reply)
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

// Beginning is where one partition is to start.
type Beginning struct {
	Topic     string
	Partition int
	Found     string // what the ledger holds now; empty where nothing
	At        ledger.Position
	Origin    *Origin // nil leaves the one there is
}

// Outcomes of Begin that aren't errors.
type Begun int

const (
	// Began: ledger, origins and schema are written.
	Began Begun = iota
	// Overtaken: another was first; the ledger has to be read again.
	Overtaken
	// HeldUp: a rebuild is about to swap; try again.
	HeldUp
	// Orphaned: windows are listed and the ledger is empty.
	Orphaned
)

// Begin writes where partitions start, all or none.
func (s *Store) Begin(ctx context.Context, all []Beginning) (Begun, error) {
	args := []any{nil, nil, nil, s.keys.ledger(), s.keys.schema(), s.keys.origin(), s.keys.windows(), s.keys.hold(), s.schema}
	for _, b := range all {
		origin := ""
		if b.Origin != nil {
			origin = b.Origin.String()
		}
		args = append(args, field(b.Topic, b.Partition), b.Found, b.At.String(), origin)
	}
	reply, err := s.run(ctx, startScript, 5, args)
	if err != nil {
		return 0, fmt.Errorf("set where %s starts: %w", all[0].Topic, err)
	}
	words, err := texts(reply)
	if err != nil || len(words) == 0 {
		return 0, fmt.Errorf("set where %s starts: an unexpected reply %v", all[0].Topic, reply)
	}
	switch words[0] {
	case "applied":
		return Began, nil
	case "moved":
		return Overtaken, nil
	case "held":
		return HeldUp, nil
	case "orphaned":
		return Orphaned, nil
	case "schema":
		return 0, &SchemaError{Prefix: s.prefix, Wanted: s.schema, Found: words[1]}
	}
	return 0, fmt.Errorf("set where %s starts: an unexpected reply %q", all[0].Topic, words[0])
}

// Position reads a partition's place in the ledger: its text, empty where there
// is none.
func (s *Store) Position(ctx context.Context, topic string, partition int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	text, err := s.client.HGet(ctx, s.keys.ledger(), field(topic, partition)).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the position of %s/%d: %w", topic, partition, err)
	}
	return text, nil
}

// Report writes a worker's line for status. Nothing is decided by it.
func (s *Store) Report(ctx context.Context, topic string, partition int, line string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.client.HSet(ctx, s.keys.workers(), field(topic, partition), line).Err(); err != nil {
		return fmt.Errorf("report %s/%d: %w", topic, partition, err)
	}
	return nil
}
