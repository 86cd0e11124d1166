package simulate

// Ways to break what notices an unclean election.

var brokenElections = []broken{
	{
		name: "an epoch that ends early is no loss", what: "events that an unclean election lost stay in the boards, and those in their place never count",
		source: []patch{{startDir + "start.go", "	if end < 0 || end >= counted {\n", "	if end < 0 || end >= counted || broken(\"an epoch that ends early is no loss\") {\n"}},
		wrong:  `partition 0 has to be halted as ["truncated"], and is ""`,
		seed:   electionsFrom + 1,
	},
	{
		name: "a later epoch is read on", what: "an unclean election while the consumer runs isn't noticed",
		source: []patch{{ingestDir + "source.go", "offset >= was.Offset && first > was.Epoch {\n", "offset >= was.Offset && first > was.Epoch && !broken(\"a later epoch is read on\") {\n"}},
		wrong:  `partition 0 has to be halted as ["truncated"], and is ""`,
		seed:   electionsFrom + 8,
	},
	{
		name: "a start goes on at the position alone", what: "an unclean election while no consumer runs isn't noticed",
		source: []patch{{ingestDir + "identity.go", "	if !ok || was.Offset == 0 {\n", "	if !ok || was.Offset == 0 || broken(\"a start goes on at the position alone\") {\n"}},
		wrong:  `partition 0 has to be halted as ["truncated"], and is ""`,
		seed:   electionsFrom + 1,
	},
	{
		name: "a lineage ends where it was committed", what: "an election isn't noticed if it loses events that a dead owner has counted and not committed",
		source: []patch{{ingestDir + "locate.go", "	if was.Offset >= position {\n", "	if was.Offset >= position || broken(\"a lineage ends where it was committed\") {\n"}},
		wrong:  `partition 0 has to be halted as ["truncated"], and is ""`,
		seed:   electionsFrom + 270,
	},
}
