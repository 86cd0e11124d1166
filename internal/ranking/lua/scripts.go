// Package lua holds the scripts that run in Redis, and a registry of all of them. Each script is a file
// that lists its keys, arguments and replies at its head. Code that several scripts share is a file too,
// which they include with a line of its own (see layouts.lua).
package lua

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1
	"embed"
	"encoding/hex"
	"regexp"
)

//go:embed *.lua
var files embed.FS

// Script is a script with the names by which this package and Redis know it.
type Script struct {
	Name   string // file name: apply.lua
	Source string
	SHA    string
}

// Scripts for the standings and their ledger, listing and other keys.
var (
	Apply      = load("apply.lua")
	Start      = load("start.lua")
	Settle     = load("settle.lua")
	Extend     = load("extend.lua")
	State      = load("state.lua")
	Report     = load("report.lua")
	Read       = load("read.lua")
	Above      = load("above.lua")
	Page       = load("page.lua")
	There      = load("there.lua")
	Retire     = load("retire.lua")
	DropBoards = load("dropboards.lua")
	Seal       = load("seal.lua")
	Unseal     = load("unseal.lua")
	Stay       = load("stay.lua")
	Lead       = load("lead.lua")
	Forget     = load("forget.lua")
	Ban        = load("ban.lua")
	Try        = load("try.lua")
)

// Scripts of a rebuild and a reshard.
var (
	Lock   = load("lock.lua")
	Keep   = load("keep.lua")
	Load   = load("load.lua")
	Swap   = load("swap.lua")
	Switch = load("switch.lua")
)

// include matches a line in a script that load replaces by the text of another file.
var include = regexp.MustCompile(`(?m)^-- include ([a-z]+\.lua)\n`)

func load(name string) Script {
	source := include.ReplaceAllStringFunc(read(name), func(line string) string {
		return read(include.FindStringSubmatch(line)[1])
	})
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see above
	return Script{name, source, hex.EncodeToString(sum[:])}
}

func read(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the files are embedded, so this is a bug
	}
	return string(text)
}
