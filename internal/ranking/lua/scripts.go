// Package lua holds the scripts that run in Redis: one file each, which lists its keys, its
// arguments and what it returns at its head, and one registry of them all. What several are
// built with is a file, too, and included by a line of its own (layouts.lua).
package lua

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1
	"embed"
	"encoding/hex"
	"regexp"
)

//go:embed *.lua
var files embed.FS

// Script is a script and the name that Redis knows it by.
type Script struct {
	Name   string // of its file: apply.lua
	Source string
	SHA    string
}

// Standings and what stands beside them.
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

// A rebuild's and a reshard's.
var (
	Lock   = load("lock.lua")
	Keep   = load("keep.lua")
	Load   = load("load.lua")
	Swap   = load("swap.lua")
	Switch = load("switch.lua")
)

// include is the line in a script that stands for the text of another file.
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
		panic(err) // the binary has it, or doesn't start
	}
	return string(text)
}
