package redissim

// The Lua environment of scripts: the libraries that Redis provides, and its protection of globals.

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
)

// engine is a Lua state with the execution that currently uses it.
type engine struct {
	lua *lua.LState
	tx  *tx
}

// engines are reused: creating one costs more than a small script.
var engines = sync.Pool{New: func() any { return newEngine() }}

// The stack has room for unpack of 8,000 values, as in Redis, and for the values below them.
const (
	registry     = 2 << 10
	mostRegistry = 32 << 10
)

func newEngine() *engine {
	e := &engine{lua: lua.NewState(lua.Options{SkipOpenLibs: true, RegistrySize: registry, RegistryMaxSize: mostRegistry, RegistryGrowStep: registry, CallStackSize: 200})}
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}, {lua.StringLibName, lua.OpenString}, {lua.MathLibName, lua.OpenMath},
	} {
		e.lua.Push(e.lua.NewFunction(library.open))
		e.lua.Push(lua.LString(library.name))
		e.lua.Call(1, 0)
	}
	for _, name := range []string{"print", "dofile", "loadfile", "require", "module", "newproxy", "_printregs"} {
		e.lua.SetGlobal(name, lua.LNil)
	}
	e.lua.SetGlobal("redis", e.lua.SetFuncs(e.lua.NewTable(), map[string]lua.LGFunction{
		"call":         func(*lua.LState) int { return e.call(true) },
		"pcall":        func(*lua.LState) int { return e.call(false) },
		"error_reply":  single("err"),
		"status_reply": single("ok"),
		"sha1hex":      func(l *lua.LState) int { l.Push(lua.LString(shaOf(l.CheckString(1)))); return 1 },
	}))
	e.lua.SetGlobal("cjson", e.lua.SetFuncs(e.lua.NewTable(), map[string]lua.LGFunction{
		"decode": decodeJSON, "encode": encodeJSON,
	}))
	e.lua.SetGlobal("tostring", e.lua.NewFunction(textOf(e.lua.GetGlobal("tostring"))))
	guard := e.lua.SetFuncs(e.lua.NewTable(), map[string]lua.LGFunction{
		"__index": func(l *lua.LState) int {
			l.RaiseError("Script attempted to access nonexistent global variable '%s'", l.Get(2).String())
			return 0
		},
		"__newindex": func(l *lua.LState) int {
			l.RaiseError("Attempt to modify a readonly table")
			return 0
		},
	})
	e.lua.SetMetatable(e.lua.G.Global, guard)
	return e
}

// textOf is tostring with 14 digits, as in Lua: a script that formats a score with it loses digits.
func textOf(other lua.LValue) lua.LGFunction {
	return func(l *lua.LState) int {
		v := l.CheckAny(1)
		if n, is := v.(lua.LNumber); is {
			l.Push(lua.LString(digits(float64(n), 14)))
			return 1
		}
		l.Push(other)
		l.Push(v)
		l.Call(1, 1)
		return 1
	}
}

func (e *engine) run(t *tx, proto *lua.FunctionProto, keys, args []string) (any, error) {
	e.tx = t
	defer func() { e.tx = nil }()
	e.lua.G.Global.RawSetString("KEYS", e.list(keys))
	e.lua.G.Global.RawSetString("ARGV", e.list(args))
	e.lua.Push(e.lua.NewFunctionFromProto(proto))
	if err := e.lua.PCall(0, 1, nil); err != nil {
		return nil, err
	}
	reply := fromLua(e.lua.Get(-1))
	e.lua.SetTop(0)
	return reply, nil
}

func (e *engine) list(texts []string) *lua.LTable {
	table := e.lua.CreateTable(len(texts), 0)
	for i, text := range texts {
		table.RawSetInt(i+1, lua.LString(text))
	}
	return table
}

// call is redis.call, which raises an error, or redis.pcall, which returns it.
func (e *engine) call(raises bool) int {
	l := e.lua
	args := make([]string, l.GetTop())
	for i := range args {
		switch v := l.Get(i + 1).(type) {
		case lua.LString:
			args[i] = string(v)
		case lua.LNumber:
			args[i] = digits(float64(v), 17)
		default:
			l.RaiseError("Lua redis lib command arguments must be strings or integers")
		}
	}
	reply := e.tx.run(args)
	failed, is := reply.(Error)
	if !is || !raises {
		l.Push(toLua(l, reply))
		return 1
	}
	table := l.CreateTable(0, 2)
	table.RawSetString("err", lua.LString(failed))
	if _, line, found := strings.Cut(strings.TrimSuffix(l.Where(1), ":"), scriptName+":"); found {
		table.RawSetString("line", lua.LString(strings.TrimSuffix(strings.TrimSpace(line), ":")))
	}
	l.Error(table, 0)
	return 0
}

func single(name string) lua.LGFunction {
	return func(l *lua.LState) int {
		table := l.CreateTable(0, 1)
		table.RawSetString(name, lua.LString(strings.TrimPrefix(l.CheckString(1), "-")))
		l.Push(table)
		return 1
	}
}

// --- cjson ---------------------------------------------------------------------------

func decodeJSON(l *lua.LState) int {
	text := l.CheckString(1)
	var v any
	err := json.Unmarshal([]byte(text), &v)
	if _, tooLarge := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !tooLarge {
		l.RaiseError("%s", err.Error())
	}
	l.Push(fromJSON(l, v))
	return 1
}

// fromJSON omits null in lists: it would be cjson.null, which no script uses.
func fromJSON(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case string:
		return lua.LString(v)
	case float64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	case []any:
		table := l.CreateTable(len(v), 0)
		for i, e := range v {
			table.RawSetInt(i+1, fromJSON(l, e))
		}
		return table
	case map[string]any:
		table := l.CreateTable(0, len(v))
		for name, e := range v {
			table.RawSetString(name, fromJSON(l, e))
		}
		return table
	}
	return lua.LNil
}

func encodeJSON(l *lua.LState) int {
	text, err := toJSON(l.CheckAny(1))
	if err != nil {
		l.RaiseError("%s", err.Error())
	}
	l.Push(lua.LString(text))
	return 1
}

// toJSON encodes lists and plain values. It does not encode objects: cjson does not promise an order of fields,
// and no script needs them.
func toJSON(v lua.LValue) (string, error) {
	switch v := v.(type) {
	case lua.LString:
		text, err := json.Marshal(string(v))
		return string(text), err
	case lua.LNumber:
		if f := float64(v); math.IsInf(f, 0) || math.IsNaN(f) {
			return "", errors.New("Cannot serialise number: must not be NaN or Inf")
		}
		return strconv.FormatFloat(float64(v), 'g', 14, 64), nil
	case lua.LBool:
		return strconv.FormatBool(bool(v)), nil
	case *lua.LTable:
		if v.Len() == 0 {
			return "{}", nil
		}
		var b strings.Builder
		for i := 1; i <= v.Len(); i++ {
			text, err := toJSON(v.RawGetInt(i))
			if err != nil {
				return "", err
			}
			b.WriteString(map[bool]string{true: "[", false: ","}[i == 1] + text)
		}
		return b.String() + "]", nil
	case *lua.LNilType:
		return "null", nil
	}
	return "", fmt.Errorf("Cannot serialise %s", v.Type())
}
