package redissim

// EVAL, EVALSHA and SCRIPT: the scripts that the server knows, and the replies of scripts.

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

func eval(t *tx, a []string) any {
	sha := shaOf(a[0])
	if _, known := t.scripts[sha]; !known {
		if failed := t.load(sha, a[0]); failed != nil {
			return failed
		}
	}
	return t.call(sha, a[1:])
}

func evalsha(t *tx, a []string) any {
	sha := strings.ToLower(a[0])
	if _, known := t.scripts[sha]; !known {
		return Error("NOSCRIPT No matching script. Please use EVAL.")
	}
	return t.call(sha, a[1:])
}

func scripts(t *tx, a []string) any {
	switch sub := strings.ToLower(a[0]); {
	case sub == "flush":
		clear(t.scripts)
		return ok
	case sub == "load" && len(a) == 2:
		sha := shaOf(a[1])
		if failed := t.load(sha, a[1]); failed != nil {
			return failed
		}
		return sha
	case sub == "exists":
		all := []any{}
		for _, sha := range a[1:] {
			_, known := t.scripts[strings.ToLower(sha)]
			all = append(all, integer(known))
		}
		return all
	}
	return Error("ERR unknown subcommand or wrong number of arguments for '" + a[0] + "'.")
}

// load stores a script, or returns its compile error.
func (t *tx) load(sha, source string) any {
	run := source
	if t.Rewrite != nil {
		run = t.Rewrite(source)
	}
	if _, err := compiled(run); err != nil {
		return Error("ERR Error compiling script (new function): " + oneLine(err.Error()))
	}
	t.scripts[sha], t.names[sha] = run, nameOf(source)
	return nil
}

func shaOf(source string) string {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see above
	return hex.EncodeToString(sum[:])
}

func oneLine(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", " ") }

// prototypes caches all scripts that this process has compiled, for all servers.
var prototypes sync.Map // source -> *lua.FunctionProto

func compiled(source string) (*lua.FunctionProto, error) {
	if p, there := prototypes.Load(source); there {
		return p.(*lua.FunctionProto), nil
	}
	chunk, err := parse.Parse(strings.NewReader(source), scriptName)
	if err != nil {
		return nil, err
	}
	p, err := lua.Compile(chunk, scriptName)
	if err != nil {
		return nil, err
	}
	prototypes.Store(source, p)
	return p, nil
}

// scriptName is the name of every script in Redis's error messages.
const scriptName = "@user_script"

// call runs a known script: a is the number of keys, the keys and the arguments.
func (t *tx) call(sha string, a []string) any {
	keys, err := strconv.Atoi(a[0])
	switch {
	case err != nil:
		return errInteger
	case keys < 0:
		return Error("ERR Number of keys can't be negative")
	case keys > len(a)-1:
		return Error("ERR Number of keys can't be greater than number of args")
	}
	proto, err := compiled(t.scripts[sha])
	if err != nil {
		return Error("ERR " + oneLine(err.Error()))
	}
	t.script = true
	defer func() { t.script = false }()
	e := engines.Get().(*engine)
	reply, err := e.run(t, proto, a[1:1+keys], a[1+keys:])
	if err != nil {
		return failure(err, sha) // an engine that failed is not used again
	}
	engines.Put(e)
	return reply
}

var lineOfError = regexp.MustCompile(scriptName + `:(\d+):`)

// failure returns a script's error in Redis's format:
// "CODE text script: <sha>, on @user_script:<line>."
func failure(err error, sha string) Error {
	text, line := oneLine(err.Error()), "0"
	if failed, is := err.(*lua.ApiError); is { //nolint:errorlint // PCall gives nothing else, and wraps nothing
		if table, is := failed.Object.(*lua.LTable); is {
			text = lua.LVAsString(table.RawGetString("err"))
			if at := table.RawGetString("line"); at != lua.LNil {
				line = lua.LVAsString(at)
			}
		} else {
			text = oneLine(failed.Object.String())
			if found := lineOfError.FindStringSubmatch(text); found != nil {
				line = found[1]
			}
			text = "ERR " + strings.TrimPrefix(text, "@")
		}
	}
	return Error(fmt.Sprintf("%s script: %s, on %s:%s.", text, sha, scriptName, line))
}

// fromLua converts a script's value to a reply: numbers are truncated to integers, false becomes nil, and a list ends
// at the first nil.
func fromLua(v lua.LValue) any {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return truncated(float64(v))
	case lua.LBool:
		if v {
			return int64(1)
		}
		return nil
	case *lua.LTable:
		if text, is := v.RawGetString("err").(lua.LString); is {
			return Error(strings.TrimPrefix(string(text), "-"))
		}
		if text, is := v.RawGetString("ok").(lua.LString); is {
			return Status(oneLine(string(text)))
		}
		all := []any{}
		for i := 1; ; i++ {
			e := v.RawGetInt(i)
			if e == lua.LNil {
				return all
			}
			all = append(all, fromLua(e))
		}
	}
	return nil
}

// truncated converts like C on the machines that Redis runs on: a value out of the range of 64-bit integers
// becomes the lowest one.
func truncated(f float64) int64 {
	if math.IsNaN(f) || f >= 1<<63 || f < -1<<63 {
		return math.MinInt64
	}
	return int64(f)
}

// toLua converts a reply to a script's value, in the form of protocol version 2.
func toLua(l *lua.LState, reply any) lua.LValue {
	switch r := flat(reply).(type) {
	case int64:
		return lua.LNumber(r)
	case string:
		return lua.LString(r)
	case Status:
		table := l.CreateTable(0, 1)
		table.RawSetString("ok", lua.LString(r))
		return table
	case Error:
		table := l.CreateTable(0, 1)
		table.RawSetString("err", lua.LString(r))
		return table
	case []any:
		table := l.CreateTable(len(r), 0)
		for i, e := range r {
			table.RawSetInt(i+1, toLua(l, e))
		}
		return table
	}
	return lua.LFalse
}
