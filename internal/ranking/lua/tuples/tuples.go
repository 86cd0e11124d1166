// Package tuples holds the part of a script that merges a board's tuples into scores.
package tuples

import _ "embed" // the file beside this

// Source is the text of tuples.lua: a local function, tuples, for a script to be built with.
//
//go:embed tuples.lua
var Source string
