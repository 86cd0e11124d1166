package simulate

// Broken variants of final windows.

const (
	sealingDir = "internal/sealing/"
	shadowDir  = "internal/ranking/shadow/"
)

var brokenSeals = []broken{
	{
		name: "the logs' ends are looked up before windows are due", what: "what is written as a window closes is neither in it nor said to be",
		source: []patch{
			{
				sealingDir + "sealing.go", "	redis, last, err := s.Boards.Clocks(ctx)\n",
				`	var early map[ledger.Partition]int64
	if broken("the logs' ends are looked up before windows are due") {
		var err error
		if early, err = s.ends(ctx); err != nil {
			return Result{}, err
		}
		if err := retry.Sleep(ctx, time.Second); err != nil { // it is paused
			return Result{}, err
		}
	}
	redis, last, err := s.Boards.Clocks(ctx)
`,
			},
			{
				sealingDir + "sealing.go", "	sealed, err := s.Boards.Seal(ctx, before, due)\n",
				`	if early != nil {
		before = early
	}
	sealed, err := s.Boards.Seal(ctx, before, due)
`,
			},
		},
		wrong: "a window is sealed without",
		small: of(writtenAsItCloses), seed: 8,
	},
	{
		name: "a seal doesn't compare the ledger", what: "a window is final while events of it wait to be counted",
		script: []patch{{"seal.lua", "  if not from or from < tonumber(ARGV[i + 1]) then return {'behind', ARGV[i], position} end\n", ""}},
		wrong:  "a window is sealed without",
		seed:   sealsFrom + 7,
	},
	{
		name: "one shard's seal is taken for all", what: "members of a shard that isn't sealed yet lose events that its ledger says are in",
		source: []patch{
			{foldDir + "targets.go", "ts.until(ts.shards.Of(hash), offset)", "ts.until(map[bool]int{false: ts.shards.Of(hash)}[broken(\"one shard's seal is taken for all\")], offset)"},
			{foldDir + "sealed.go", "			w := sealedWindow{shard, windows[i].Board", "			w := sealedWindow{map[bool]int{false: shard}[broken(\"one shard's seal is taken for all\")], windows[i].Board"},
		},
		wrong: "the standings differ from the oracle's",
		seed:  sealsFrom + 207,
	},
	{
		name: "a window is final once one shard has sealed it", what: "the other shards' members still change it",
		source: []patch{{
			"internal/ranking/boards/seal.go", "		if slices.Min(d.final) < max(1, d.least) {",
			`		if slices.Min(d.final) < max(1, d.least) && !(broken("a window is final once one shard has sealed it") && slices.Max(d.final) > 0) {`,
		}},
		wrong: "it never comes to rest",
		seed:  sealsFrom + 9,
	},
	{
		name: "apply ignores the seal", what: "late events change what is final",
		script: []patch{{"apply.lua", "if sealed then return sealed end\n", ""}},
		wrong:  "a final window has changed",
		seed:   sealsFrom + 30,
	},
	{
		name: "apply doesn't compare what is left out", what: "what comes after a window was reopened, or Redis went back to before its seal, never counts in it",
		script: []patch{{"apply.lua", "  if #unsealed > 1 then return unsealed end\n", ""}},
		wrong:  "the standings differ from the oracle's",
		seed:   sealsFrom + 79,
	},
	{
		name: "Redis's clock alone decides", what: "a Redis whose clock jumps ahead seals windows whose events are still to come",
		source: []patch{{sealingDir + "sealing.go", "	own := s.Now()\n", `	own := s.Now()
	if broken("Redis's clock alone decides") {
		own = redis
	}
`}},
		wrong: "a window is sealed before",
		seed:  sealsFrom + 3,
	},
	{
		name: "a replica's clock alone decides", what: "a replica whose clock is ahead seals windows whose events are still to come",
		source: []patch{{sealingDir + "sealing.go", "	s.compare(redis, last, own)\n", `	s.compare(redis, last, own)
	if broken("a replica's clock alone decides") {
		redis = own
	}
`}},
		script: []patch{{"seal.lua", "  elseif now <= l['end'] + lateness then\n    all[i + 1] = 'open'\n", ""}},
		wrong:  "a window is sealed before",
		seed:   sealsFrom + 515,
	},
	{
		name: "a window that was reopened is sealed as the same revision", what: "two standings are called the same",
		script: []patch{{"seal.lua", "r.revision, r.reopened = r.revision + 1, nil", "r.revision, r.reopened = r.revision, nil"}},
		source: []patch{{"internal/ranking/sealrecord.go", "	if !r.Reopened.IsZero() {\n", "	if !r.Reopened.IsZero() && !broken(\"a window that was reopened is sealed as the same revision\") {\n"}},
		wrong:  "a window that was",
		seed:   sealsFrom + 47,
	},
	{
		name: "a rebuild replaces final windows", what: "what is final changes by a rebuild",
		source: []patch{{
			shadowDir + "plan.go", "	case listed.Final > 0 && !w.Lost:\n",
			"	case listed.Final > 0 && !w.Lost && !broken(\"a rebuild replaces final windows\"):\n",
		}},
		wrong: "a rebuild has replaced",
		seed:  sealsFrom + 122,
	},
	{
		name: "what is rebuilt is final as before", what: "a final window that was lost is another one under the same revision",
		source: []patch{{
			shadowDir + "plan.go", "		of.Final = 0 //", `		if !broken("what is rebuilt is final as before") {
			of.Final = 0
		} //`,
		}},
		wrong: "a final window was lost",
		seed:  sealsFrom + 457,
	},
	{
		name: "nobody notes what passes a window by until it is reopened", what: "its next revision is said to have events that it lacks",
		script: []patch{{"unseal.lua", "table.insert(r.passed, {r.at, now})\n", ""}},
		wrong:  "the record of a window's seals is wrong",
		seed:   sealsFrom + 69,
	},
	{
		name: "what stayed final is sealed as if it had been reopened", what: "a shard that went back to before a reopening is said to have events that it lacks",
		script: []patch{{"seal.lua", "if revision > 0 then table.insert", "if false then table.insert"}},
		wrong:  "the record of a window's seals is wrong",
		seed:   sealsFrom + 197,
	},
	{
		name: "a rebuild leaves the note of what had passed a window by", what: "a window that has all events is said to lack some",
		script: []patch{{"swap.lua", " or r and #r.passed > 0 then", " then"}},
		wrong:  "the record of a window's seals is wrong",
		seed:   sealsFrom + 884,
	},
}
