package simulate

// Broken variants of detecting duplicates.

var brokenRepeats = []broken{
	{
		name: "takeover looks back from the sweep's end", what: "a duplicate across a takeover counts, or what is none doesn't",
		source: []patch{{
			ingestDir + "lookback.go", "	at := min(max(first, all[r.Number].Start), next)\n",
			`	if broken("takeover looks back from the sweep's end") && r.reading.Resumes() {
		first = max(0, r.reading.To-l.records)
	}
	at := min(max(first, all[r.Number].Start), next)
`,
		}},
		wrong: "the standings differ from the oracle's",
		small: of(repeatedAcross), seed: 0,
	},
	{
		name: "what is known outlives a rollback", what: "an event that is read again is taken for a repeat of itself, or of what comes after it",
		source: []patch{{
			ingestDir + "lookback.go", "	if l == nil || l.whole && l.set.Next() == next {\n",
			`	if l != nil && broken("what is known outlives a rollback") && l.whole && l.set.Next() > next {
		return nil
	}
	if l == nil || l.whole && l.set.Next() == next {
`,
		}},
		wrong: "the standings differ from the oracle's",
		seed:  repeatsFrom + 10,
	},
	{
		name: "rebuild doesn't look back", what: "what repeats an event from before its start counts in it",
		source: []patch{{
			ingestDir + "lookback.go", "	first := max(0, next-l.records)\n",
			`	first := max(0, next-l.records)
	if broken("rebuild doesn't look back") && r.until.Given() {
		first = next
	}
`,
		}},
		wrong: "the standings differ from the oracle's",
		small: of(rebuiltSince), seed: 0,
	},
	{
		name: "start doesn't look back", what: "what repeats an event from before a position counts, as no restart found it",
		source: []patch{{
			ingestDir + "lookback.go", "	first := max(0, next-l.records)\n",
			`	first := max(0, next-l.records)
	if broken("start doesn't look back") && !r.until.Given() {
		first = next
	}
`,
		}},
		wrong: "the standings differ from the oracle's",
		seed:  repeatsFrom + 1,
	},
}
