package simulate

// Broken variants of applying boards' rules, and of choosing the rules that apply.

var brokenRules = []broken{
	{
		name: "best takes the time of a later equal submission", what: "who repeats a result loses the place of who had it first",
		script: []patch{{"layouts.lua", "packed == made and had > ticks then", "packed == made and had < ticks then"}},
		wrong:  "the standings differ from the oracle's",
		seed:   ruledFrom + 64,
	},
	{
		name: "best takes the time of a later equal submission in a batch", what: "the same, of events that are folded together",
		source: []patch{{
			rulesDir + "rule.go", "	if a.Packed > b.Packed || a.Packed == b.Packed && a.Time <= b.Time {\n",
			"	if a.Packed > b.Packed || a.Packed == b.Packed && a.Time <= b.Time != broken(\"best takes the time of a later equal submission in a batch\") {\n",
		}},
		wrong: "the standings differ from the oracle's",
		seed:  ruledFrom + 26,
	},
	{
		name: "fields of two submissions mix", what: "who has one field from here and another from there has a result that nobody had",
		script: []patch{{
			"layouts.lua", "      digit = digit + (sum and before or bias)\n",
			`      digit = digit + (sum and before or bias)
      if best and packed and before > digit then digit = before end
`,
		}},
		wrong: "the standings differ from the oracle's",
		seed:  ruledFrom + 4,
	},
	{
		name: "the last of a tick is who came last", what: "of several results within a tick another counts once they are read in another order",
		script: []patch{{"layouts.lua", "elseif had < ticks or had == ticks and packed > made then", "elseif had < ticks then"}},
		wrong:  "the standings differ from the oracle's",
		seed:   ruledFrom + 35,
	},
	{
		name: "the last of a tick is who came last in a batch", what: "the same, of events that are folded together",
		source: []patch{{
			rulesDir + "rule.go", "	if a.Time > b.Time || a.Time == b.Time && a.Packed >= b.Packed {\n",
			"	if a.Time > b.Time || a.Time == b.Time && a.Packed >= b.Packed && !broken(\"the last of a tick is who came last in a batch\") {\n",
		}},
		wrong: "the standings differ from the oracle's",
		seed:  ruledFrom + 26,
	},
	{
		name: "what lowers a sum sets its time", what: "who loses something falls behind those with as much, for its time",
		source: []patch{{
			rulesDir + "rule.go", "		packed += digit * r.weight[i]\n	}\n	if packed <= 0 {\n",
			"		packed += digit * r.weight[i]\n	}\n	if packed <= 0 && !broken(\"what lowers a sum sets its time\") {\n",
		}},
		wrong: "the standings differ from the oracle's",
		seed:  ruledFrom + 1,
	},
	{
		name: "only a sum's first field overflows", what: "what leaves the range of another field is carried into the one before",
		script: []patch{{
			"layouts.lua", "      if (digit < 0 or digit > top[f]) and not beyond", "      if f == 1 and (digit < 0 or digit > top[f]) and not beyond",
		}},
		wrong: "the oracle: \"over0\" in",
		seed:  ruledFrom + 182,
	},
	{
		name: "fewest isn't turned round", what: "of fields of which fewer are better the most are ahead",
		source: []patch{{
			"internal/codec/packing.go", "		t[i] = f.of[i].ranked(t[i])\n",
			`		if !broken("fewest isn't turned round") {
			t[i] = f.of[i].ranked(t[i])
		}
`,
		}},
		wrong: "the standings differ from the oracle's",
		seed:  ruledFrom + 2,
	},
	{
		name: "whoever takes over goes by its own rules", what: "one half of a sweep's members counts by other rules than the other",
		source: []patch{{
			ingestDir + "rulebook/rulebook.go", "	if b := all.others[id]; b != nil && id != all.Own.ID() {\n",
			"	if b := all.others[id]; b != nil && id != all.Own.ID() && !broken(\"whoever takes over goes by its own rules\") {\n",
		}},
		wrong: "the standings differ from the oracle's",
		seed:  booksFrom + 1,
	},
	{
		name: "rules are forgotten in the midst of a sweep", what: "nobody can finish what was begun by them",
		script: []patch{
			{"forget.lua", "  if by then needed[by] = true end\n", ""},
			{"forget.lua", "    needed[fields[i + 1]] = true\n", ""},
		},
		wrong: "process 2 halts a partition",
		seed:  booksFrom + 1,
	},
	{
		name: "a rebuild goes by its own rules", what: "the sweep that it settles in counts by others than what consumers add to it",
		source: []patch{{
			ingestDir + "reading.go", "	r.by = r.books.Of(next.Rules)\n",
			`	r.by = r.books.Of(next.Rules)
	if broken("a rebuild goes by its own rules") && r.until.Given() {
		r.by = own
	}
`,
		}},
		wrong: "the standings differ from the oracle's",
		seed:  booksFrom + 247,
	},
	{
		name: "a season without a start", what: "what was earned before a season counts in it",
		source: []patch{{
			"internal/periods/rule.go", "	case place == Before:\n		return 0, r.start, w, nil\n",
			`	case place == Before:
		if r.every == 0 && broken("a season without a start") {
			w = Window{r.name, seasonAll, r.start, r.end}
		}
		return 0, r.start, w, nil
`,
		}},
		wrong: "the standings differ from the oracle's",
		seed:  14,
	},
	{
		name: "a season without an end", what: "what is earned after a season counts in it, as long as it takes events",
		source: []patch{{
			"internal/periods/rule.go", "	case place == After:\n		return r.end, MaxTime, w, nil\n",
			`	case place == After:
		if broken("a season without an end") {
			w = Window{r.name, seasonAll, r.start, r.end}
		}
		return r.end, MaxTime, w, nil
`,
		}},
		wrong: "partition 0 is halted as", // a check of the commands sent reports it
		seed:  35,
	},
}
