package ranking

// The only code that calls scripts.

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/redisconn"
)

// Call calls a script with its keys, which must share a hash tag, and its arguments. The script must return
// a list.
func (s *Store) Call(ctx context.Context, script lua.Script, keys []string, args ...any) ([]any, error) {
	all := make([]any, head, head+len(keys)+len(args))
	for _, key := range keys {
		all = append(all, key)
	}
	return s.evaluate(ctx, script, len(keys), append(all, args...))
}

// head is the number of arguments before a script's keys: the command, the script, and the number of keys.
const head = 3

// evaluate calls a script. args begins with room for the head, followed by the keys and arguments; the
// caller can reuse it after the call. If the server doesn't know the script, evaluate sends the source.
func (s *Store) evaluate(ctx context.Context, script lua.Script, keys int, args []any) ([]any, error) {
	ctx = redisconn.Within(ctx, s.timeout)
	args[0], args[1], args[2] = "evalsha", script.SHA, keys
	reply, err := s.client.Do(ctx, args...).Slice()
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		args[0], args[1] = "eval", script.Source
		reply, err = s.client.Do(ctx, args...).Slice()
	}
	return reply, s.explain(s.withRoom(ctx, err), script.Source)
}

// ScriptCall is a call of a script on a shard.
type ScriptCall struct {
	Store  *Store
	Script lua.Script
	Keys   []string
	Args   []any
}

// CallEach calls scripts on shards that share a client, in one round trip to each server, and returns the
// reply and the error of each call.
func CallEach(ctx context.Context, calls []ScriptCall) (replies [][]any, errs []error) {
	replies, errs = make([][]any, len(calls)), make([]error, len(calls))
	if len(calls) == 1 {
		c := &calls[0]
		replies[0], errs[0] = c.Store.Call(ctx, c.Script, c.Keys, c.Args...)
		return replies, errs
	}
	all := make([]int, len(calls))
	for i := range calls {
		all[i] = i
	}
	for _, command := range []string{"evalsha", "eval"} { // eval is for servers that don't know the script
		var again []int
		for j, reply := range pipelined(ctx, command, calls, all) {
			i := all[j]
			if replies[i], errs[i] = reply.Slice(); errs[i] != nil && strings.HasPrefix(errs[i].Error(), "NOSCRIPT") {
				again = append(again, i)
			}
		}
		if all = again; len(all) == 0 {
			break
		}
	}
	for i, err := range errs {
		errs[i] = calls[i].Store.explain(err, calls[i].Script.Source)
	}
	return replies, errs
}

// pipelined sends the calls whose indexes are in some, and returns their replies.
func pipelined(ctx context.Context, command string, calls []ScriptCall, some []int) []*redis.Cmd {
	if len(some) == 0 {
		return nil
	}
	store := calls[some[0]].Store
	ctx = redisconn.Within(ctx, store.timeout)
	pipe := store.client.Pipeline()
	replies := make([]*redis.Cmd, len(some))
	for j, i := range some {
		c := &calls[i]
		args := []any{command, c.Script.SHA, len(c.Keys)}
		if command == "eval" {
			args[1] = c.Script.Source
		}
		for _, key := range c.Keys {
			args = append(args, key)
		}
		replies[j] = pipe.Do(ctx, append(args, c.Args...)...)
	}
	redisconn.Exec(ctx, pipe)
	return replies
}

// Unexpected returns an error for a reply that the script never returns.
func Unexpected(script lua.Script, reply any) error {
	return Faultf("an unexpected reply of %s: %s", script.Name, Clip(fmt.Sprint(reply)))
}

// Texts converts a reply's elements to strings.
func Texts(reply []any) ([]string, error) {
	all := make([]string, len(reply))
	for i, v := range reply {
		switch v := v.(type) {
		case string:
			all[i] = v
		case int64:
			all[i] = fmt.Sprint(v)
		default:
			return nil, Faultf("an unexpected reply: element %d is %T", i, v)
		}
	}
	return all, nil
}

// Fields parses a hash in the form that HGETALL returns to a script.
func Fields(reply any) (map[string]string, error) {
	list, ok := reply.([]any)
	if !ok || len(list)%2 != 0 {
		return nil, Faultf("an unexpected reply: %T for a hash", reply)
	}
	words, err := Texts(list)
	if err != nil {
		return nil, err
	}
	m := make(map[string]string, len(words)/2)
	for i := 0; i < len(words); i += 2 {
		m[words[i]] = words[i+1]
	}
	return m, nil
}
