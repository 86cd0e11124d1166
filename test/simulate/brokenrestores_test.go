package simulate

// Ways to break restores, by the rules of internal/archive/snapshot.

var brokenRestores = []broken{
	{
		name: "a restore leaves nothing out", what: "events between the first position and a row's count twice",
		source: []patch{{
			foldDir + "counted.go", "func (b *Batch) Without(c *Counted) { b.counted, b.before = c, c.Before }\n",
			`func (b *Batch) Without(c *Counted) {
	if !broken("a restore leaves nothing out") {
		b.counted, b.before = c, c.Before
	}
}
`,
		}},
		wrong: "the standings differ from the oracle's",
		from:  restoresFrom, within: 60, seed: restoresFrom + 3,
	},
	{
		name: "the last position is taken for all rows", what: "events are left out of rows that were read before them",
		source: []patch{{
			foldDir + "counted.go", "	return c.Changes[after-1].At\n",
			`	if broken("the last position is taken for all rows") {
		return c.Changes[len(c.Changes)-1].At
	}
	return c.Changes[after-1].At
`,
		}},
		wrong: "the standings differ from the oracle's",
		from:  restoresFrom, within: 100, seed: restoresFrom + 3,
	},
	{
		name: "who has no row goes by the last position", what: "who came in behind the reader has lost what they had by then",
		source: []patch{{
			foldDir + "counted.go", "	return c.Absent[shard]\n",
			`	if broken("who has no row goes by the last position") {
		return c.Changes[len(c.Changes)-1].At
	}
	return c.Absent[shard]
`,
		}},
		wrong: "the standings differ from the oracle's",
		from:  restoresFrom, within: 100, seed: restoresFrom + 3,
	},
	{
		name: "a restore is begun before all is loaded", what: "a Redis that goes back behind the last load lacks rows, and nobody knows",
		script: []patch{{"start.lua", "  if call('GET', KEYS[7]) ~= ARGV[last] then return {'unloaded'} end\n", ""}},
		wrong:  "the standings differ from the oracle's",
		from:   restoresFrom, within: 300, seed: restoresFrom + 12,
	},
	{
		name: "a restore swaps before it is past all pages", what: "events that rows have count again, as the ledger doesn't denote them",
		source: []patch{{
			"internal/rebuild/restore.go", "Until: max(reach[field], committed[field]), Log",
			"Until: map[bool]int64{false: max(reach[field], committed[field]), true: from[field]}[broken(\"a restore swaps before it is past all pages\")], Log",
		}},
		wrong: "the standings differ from the oracle's",
		from:  restoresFrom, within: 100, seed: restoresFrom + 3,
	},
	{
		name: "who has no row goes by the last shard's first position", what: "who came in as a later shard was begun has lost what they had by then",
		source: []patch{{
			foldDir + "counted.go", "	return c.Absent[shard]\n",
			`	if broken("who has no row goes by the last shard's first position") {
		return c.Absent[len(c.Absent)-1]
	}
	return c.Absent[shard]
`,
		}},
		wrong: "the standings differ from the oracle's",
		from:  shardedRestoresFrom, within: 300, seed: shardedRestoresFrom + 3,
	},
	{
		name: "all shards are read from where the last one begins", what: "the others lack what was counted between their first positions and its own",
		source: []patch{{
			"internal/rebuild/load.go", "At: p.share.first[field], Origin",
			"At: map[bool]*part{false: p, true: p.all.parts[len(p.all.parts)-1]}[broken(\"all shards are read from where the last one begins\")].share.first[field], Origin",
		}},
		wrong: "the standings differ from the oracle's",
		from:  shardedRestoresFrom, within: 300, seed: shardedRestoresFrom + 3,
	},
	{
		name: "events may count already up to the first shard's last position", what: "what rows of later shards have of behind it counts twice",
		source: []patch{{
			"internal/rebuild/restore.go", "	for _, of := range s.Surveys {\n		for field, at := range of.Reach {\n",
			`	for _, of := range s.Surveys[:map[bool]int{false: len(s.Surveys), true: 1}[broken("events may count already up to the first shard's last position")]] {
		for field, at := range of.Reach {
`,
		}},
		wrong: "the standings differ from the oracle's",
		from:  shardedRestoresFrom, within: 300, seed: shardedRestoresFrom + 1,
	},
	{
		name: "a shard that a partition came too late for is passed over", what: "the first positions of the shards behind it are taken for others'",
		source: []patch{{
			"internal/rebuild/load.go", "		c.Absent = append(c.Absent, at)\n",
			`		if _, has := survey.Reach[field]; !has && broken("a shard that a partition came too late for is passed over") {
			continue
		}
		c.Absent = append(c.Absent, at)
`,
		}},
		wrong: "the standings differ from the oracle's",
		from:  shardedRestoresFrom, within: 300, seed: shardedRestoresFrom + 282,
	},
}
