package redissim

// The execution of a command: faults, write permissions, expiry of keys.

import (
	"maps"
	"slices"
	"strings"
)

// Fault is a failure of a command. The zero value is no failure.
type Fault struct {
	// Refuse is returned at once without executing anything: "LOADING …", "BUSY …".
	Refuse string
	// Write is returned for the first write; everything before it is executed: "OOM …", "READONLY …",
	// "MISCONF …". Reads succeed.
	Write string
	// DieAt is the number, from 1, of the write of a script that fails as if the permission for it were
	// missing. Earlier writes stay.
	DieAt int
}

// Result is the result of an execution.
type Result struct {
	Reply  any
	Writes int // number of completed writes
	// Struck reports whether the fault had an effect.
	Struck bool
}

// Torn reports whether a script died after it had written.
func (r Result) Torn() bool {
	_, failed := r.Reply.(Error)
	return failed && r.Writes > 0
}

// Error replies of a server in trouble, in Redis's words.
const (
	Loading     = "LOADING Redis is loading the dataset in memory"
	Busy        = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	MasterDown  = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
	OutOfMemory = "OOM command not allowed when used memory > 'maxmemory'."
	ReadOnly    = "READONLY You can't write against a read only replica."
	Misconf     = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
		"Commands that may modify the data set are disabled, because this instance is configured to report errors " +
		"during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). " +
		"Please check the Redis logs for details about the RDB error."
	NoReplicas = "NOREPLICAS Not enough good replicas to write."
)

// Execute executes the command. It may be called more than once.
func (c *Command) Execute(f Fault) Result {
	return c.server.execute(c.session, c.Args, f)
}

// Do executes a command at once without the hook, for tests that inspect or corrupt data. The reply has the form
// of protocol version 2: hashes and scored rows are flat lists of strings.
func (s *Server) Do(args ...string) any {
	reply := flat(s.execute(&session{proto: 2}, args, Fault{}).Reply)
	if all, is := reply.([]any); is {
		for i, r := range all {
			all[i] = flat(r)
		}
	}
	return reply
}

func (s *Server) execute(c *session, args []string, f Fault) Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Refuse != "" {
		return Result{Reply: Error(f.Refuse), Struck: true}
	}
	t := s.begin(f)
	t.session = c
	reply := t.run(args)
	return Result{Reply: reply, Writes: t.writes, Struck: t.struck}
}

// tx is one execution: of a command, or of a script with all commands that it calls.
type tx struct {
	*Server
	session *session
	fault   Fault
	ms      int64 // now, constant during the execution
	script  bool
	writes  int
	struck  bool
}

func (s *Server) begin(f Fault) *tx { return &tx{Server: s, fault: f, ms: s.now().UnixMilli()} }

// command is an entry of the command table.
type command struct {
	do    func(*tx, []string) any // receives the arguments without the command's name
	least int                     // minimum number of arguments
	most  int                     // maximum number; 0: same as least; -1: unlimited
	write bool
	grows bool // may need memory
	alone bool // not allowed in a script
}

func (t *tx) run(args []string) any {
	if len(args) == 0 {
		return Error("ERR no command")
	}
	name := strings.ToLower(args[0])
	c, known := commands[name]
	if !known || t.script && c.alone {
		if t.script {
			return Error("ERR Unknown Redis command called from script")
		}
		return Error("ERR unknown command '" + args[0] + "'")
	}
	if n := len(args) - 1; n < c.least || c.most == 0 && n > c.least || c.most > 0 && n > c.most {
		if t.script {
			return Error("ERR Wrong number of args calling Redis command from script")
		}
		return Error("ERR wrong number of arguments for '" + name + "' command")
	}
	if c.write {
		if e := t.mayWrite(name, c.grows); e != "" {
			t.struck = true
			return Error(e)
		}
	}
	reply := c.do(t, args[1:])
	if _, failed := reply.(Error); c.write && !failed {
		t.writes++
	}
	return reply
}

// mayWrite returns the error for a write, or "". Redis checks its memory, its role and its disk before the first
// write of a script, and permissions before each write.
func (t *tx) mayWrite(name string, grows bool) string {
	if e := t.fault.Write; e != "" && t.writes == 0 && (grows || !strings.HasPrefix(e, "OOM ")) {
		return e
	}
	if t.fault.DieAt > 0 && t.script && t.writes+1 == t.fault.DieAt {
		return "NOPERM User standings has no permissions to run the '" + name + "' command"
	}
	return ""
}

// look returns the value of a key, or nil.
func (t *tx) look(key string) *value {
	v := t.keys[key]
	if v != nil && v.expires != 0 && v.expires <= t.ms {
		delete(t.keys, key)
		return nil
	}
	return v
}

const wrongType = Error("WRONGTYPE Operation against a key holding the wrong kind of value")

// read returns the value of a key, nil if it is missing. A value of another kind is an error.
func (t *tx) read(key string, k kind) (*value, any) {
	v := t.look(key)
	if v != nil && v.kind != k {
		return nil, wrongType
	}
	return v, nil
}

// write returns the value of a key for modification, and creates it if it is missing.
func (t *tx) write(key string, k kind) (*value, any) {
	v, failed := t.read(key, k)
	if failed != nil {
		return nil, failed
	}
	if v == nil {
		v = &value{kind: k}
		t.keys[key] = v
	}
	return t.own(key, v), nil
}

// own copies a value before modification if a snapshot shares it.
func (t *tx) own(key string, v *value) *value {
	if v.shared {
		v = v.clone()
		t.keys[key] = v
	}
	return v
}

// tidy removes an empty hash or sorted set, as Redis does.
func (t *tx) tidy(key string, v *value) {
	if v.kind == hashKind && len(v.hash.fields) == 0 || v.kind == zsetKind && len(v.zset.scores) == 0 {
		delete(t.keys, key)
	}
}

// all returns the existing keys, sorted.
func (t *tx) all() []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(t.keys)) {
		if t.look(key) != nil {
			all = append(all, key)
		}
	}
	return all
}
