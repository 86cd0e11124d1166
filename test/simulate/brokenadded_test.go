package simulate

// Broken variants of adding a period while processes run.

var brokenAdded = []broken{
	{
		name: "an added period has no time", what: "the running window of an added period is shown as whole, and lacks all that was counted before",
		script: []patch{{"extend.lua", "  elseif not first or first < since then\n", "  elseif false then\n"}},
		wrong:  "a window that was counted without its period is shown as whole",
		seed:   addedFrom + 1,
	},
	{
		name: "the schema isn't compared by apply", what: "a process without the added period continues to count, and windows lack its events without a mark",
		script: []patch{{"apply.lua", "if schema ~= ARGV[4] then return {'schema', schema or ''} end\n", ""}},
		wrong:  "process 1 counts without the added period",
		seed:   addedFrom + 1,
	},
	{
		name: "an added period is counted from Redis's clock on", what: "a window that starts soon lacks the events that were counted early, and is shown as whole",
		script: []patch{{"extend.lua", "math.ceil(tonumber(time[2]) / 1000) + tonumber(ARGV[3])", "math.ceil(tonumber(time[2]) / 1000)"}},
		wrong:  "a window that was counted without its period is shown as whole",
		seed:   addedFrom + 78,
	},
	{
		name: "what another began is finished without the added period", what: "a shard that Redis has lost begins with the period, and its windows lack what it is brought along by",
		source: []patch{{
			ingestDir + "rulebook/rulebook.go", "	counting.Windows = counting.Windows.With(&all.Own.Fold)\n",
			"	if !broken(\"what another began is finished without the added period\") {\n		counting.Windows = counting.Windows.With(&all.Own.Fold)\n	}\n",
		}},
		wrong: "the standings differ from the oracle's",
		seed:  addedFrom + 16,
	},
	{
		name: "a period is added at the start alone", what: "partitions halt once Redis goes back to before the period was added",
		source: []patch{{ingestDir + "locate/locate.go", "	for i := range states {\n		st := states[i]", "	for i := range states {\n		if broken(\"a period is added at the start alone\") {\n			break\n		}\n		st := states[i]"}},
		wrong:  `partition 0 is halted as "schema", and nothing asks`,
		seed:   addedFrom + 6,
	},
	{
		name: "late is early", what: "an event that came too late for all periods before one was added is counted as early",
		source: []patch{{ingestDir + "reader.go", "		b.Late++\n", "		if broken(\"late is early\") {\n			b.Early++\n			break\n		}\n		b.Late++\n"}},
		wrong:  "the processes count 50 applied,",
		seed:   72164676923181,
	},
}
