package simulate

// Broken variants of the borders of windows.

var brokenZones = []broken{
	{
		name: "every process has its own borders", what: "replicas with other time zone data halt at each other's windows",
		source: []patch{{ingestDir + "shards/borders.go", "		known[u.Border] = at\n", "		known[u.Border] = map[bool]int64{false: at, true: u.At}[broken(\"every process has its own borders\")]\n"}},
		wrong:  `partition 1 is halted as "window_bounds"`,
		seed:   zonesFrom + 6,
	},
	{
		name: "apply opens a window by any bounds", what: "borders that a process knows, and Redis has lost, make windows that have gaps or overlap",
		script: []patch{{"apply.lua", "      if string.match(start or '', '^%S+') ~= first or string.match(stop or '', '^%S+') ~= last then return {'bounds', name, ''} end\n", ""}},
		wrong:  "the standings differ from the oracle's",
		seed:   zonesFrom + 32,
	},
	{
		name: "the last to settle a border decides", what: "windows that are open change their bounds",
		script: []patch{{"settle.lua", "    if not at and now < tonumber", "    if now < tonumber"}},
		wrong:  "the standings differ from the oracle's",
		seed:   zonesFrom + 126,
	},
}
