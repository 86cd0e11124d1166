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
	Apply       = load("apply.lua")
	Start       = load("start.lua")
	Settle      = load("settle.lua")
	Extend      = load("extend.lua")
	State       = load("state.lua")
	Report      = load("report.lua")
	Read        = load("read.lua")
	Above       = load("above.lua")
	Rows        = load("rows.lua")
	Lost        = load("lost.lua")
	Retire      = load("retire.lua")
	DropBoards  = load("dropboards.lua")
	Seal        = load("seal.lua")
	Unseal      = load("unseal.lua")
	Stay        = load("stay.lua")
	Lead        = load("lead.lua")
	Compare     = load("compare.lua")
	Scores      = load("scores.lua")
	Forget      = load("forget.lua")
	Ban         = load("ban.lua")
	MergeNames  = load("mergenames.lua")
	ForgetNames = load("forgetnames.lua")
	Try         = load("try.lua")
)

// A rebuild's.
var (
	Lock       = load("lock.lua")
	Renew      = load("renew.lua")
	Release    = load("release.lua")
	Both       = load("both.lua")
	There      = load("there.lua")
	Swap       = load("swap.lua")
	TryRebuild = load("tryrebuild.lua")
)

// How many shards there are, and what changes it.
var (
	Number   = load("number.lua")
	Prolong  = load("prolong.lua")
	Page     = load("page.lua")
	Paste    = load("paste.lua")
	Renumber = load("renumber.lua")
	Keep     = load("keep.lua")
	Leave    = load("leave.lua")
	Mark     = load("mark.lua")
	Discard  = load("discard.lua")

	TryReshard = load("tryreshard.lua")
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
