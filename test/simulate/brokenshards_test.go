package simulate

// Broken variants of handling several shards.

var brokenShards = []broken{
	{
		name: "the plan of a first start isn't followed", what: "events that have come since a start was written first are in no board",
		source: []patch{{
			ingestDir + "locate/resolve.go", "	if s == start.Begin {\n		r.Terms.Follow(",
			"	if s == start.Begin && !broken(\"the plan of a first start isn't followed\") {\n		r.Terms.Follow(",
		}},
		wrong: "partition 0 was to begin",
		small: of(startsAgain), seed: 3,
	},
	{
		name: "a reading moves shards that it isn't for", what: "a shard's ledger goes over events that it lacks",
		source: []patch{{
			ingestDir + "sweeper.go", "			if b.Of(l.shard) {\n",
			"			if b.Of(l.shard) || broken(\"a reading moves shards that it isn't for\") {\n",
		}},
		wrong: "the standings differ from the oracle's",
		small: of(lostMidway), seed: 27,
	},
	{
		name: "a batch is through without its last shard", what: "a shard's ledger goes over events that it lacks",
		source: []patch{{
			ingestDir + "sweeper.go", "	for len(lanes) > 0 {\n",
			`	if broken("a batch is through without its last shard") && len(lanes) > 1 {
		lanes = lanes[:len(lanes)-1]
	}
	for len(lanes) > 0 {
`,
		}},
		wrong: "the standings differ from the oracle's",
		seed:  16,
	},
	{
		name: "the highest shard is committed", what: "the offset is committed before the events of another shard count",
		source: []patch{{
			ingestDir + "sweeper.go", "		s.commits.At(s.Topic, s.Number, s.positions().Lowest(), s.trail)\n	}\n	return nil\n}\n\n// each",
			`		lowest := s.positions().Lowest()
		for _, p := range s.positions() {
			if broken("the highest shard is committed") {
				lowest = max(lowest, p.From)
			}
		}
		s.commits.At(s.Topic, s.Number, lowest, s.trail)
	}
	return nil
}

// each`,
		}},
		wrong: "offset 1 of partition 0 is committed",
		seed:  15,
	},
	{
		name: "a lost shard copies where the others are", what: "a shard that was lost begins where the others are by now, and lacks what was before",
		source: []patch{{
			startDir + "start.go", "	case f.Elsewhere && f.Unread && !f.Committed:\n",
			"	case f.Elsewhere && (f.Unread && !f.Committed || broken(\"a lost shard copies where the others are\")):\n",
		}},
		wrong: "partition 0 starts at offset",
		seed:  344,
	},
	{
		name: "a lost shard begins before the others", what: "it counts events that nobody asked for, and the others don't",
		source: []patch{{
			startDir + "shards.go", "		if first != nil && first.Offset > b.At.From {\n",
			"		if first != nil && first.Offset > b.At.From && !broken(\"a lost shard begins before the others\") {\n",
		}},
		wrong: "partition 0 begins at offset",
		seed:  221,
	},
	{
		name: "pieces cross a shard's border", what: "members are on a shard that isn't theirs, or on two",
		source: []patch{{
			foldDir + "pieces.go", "	if i >= 0 && p.end != 0 &&", "	if i >= 0 && p.end != 0 && !broken(\"pieces cross a shard's border\") &&",
		}},
		wrong: `member "u1" of shard`,
		seed:  26,
	},
	{
		name: "a shard that lags is never moved", what: "where no event follows, a shard's ledger isn't at the log's end, and nothing can be committed",
		source: []patch{{
			ingestDir + "lane.go", "	case l.lags():\n", "	case l.lags() && !broken(\"a shard that lags is never moved\"):\n",
		}},
		wrong: "it never comes to rest",
		seed:  15,
	},
	{
		name: "a reading folds for shards that it isn't for", what: "events are consumed twice, and counted once",
		source: []patch{{
			foldDir + "batch.go", "	case s.out:\n", "	case s.out && !broken(\"a reading folds for shards that it isn't for\"):\n",
		}},
		wrong: "process 1 consumed 1 events, and counts",
		small: of(lostMidway), seed: 24,
	},
	{
		name: "a shard is through whose members are left", what: "a reading that memory cut short moves the shards behind the cut over what it left out",
		source: []patch{{
			foldDir + "batch.go", "	case b.high <= max(low, at.Hash):\n		return at\n",
			`	case b.high <= max(low, at.Hash):
		if broken("a shard is through whose members are left") {
			return ledger.At(b.to)
		}
		return at
`,
		}},
		wrong: "the standings differ from the oracle's",
		small: of(narrowly), seed: 62,
	},
}
