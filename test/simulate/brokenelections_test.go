package simulate

// Broken variants of detecting an unclean election.

var brokenElections = []broken{
	{
		name: "an epoch that ends early is no loss", what: "events that an unclean election lost stay in the boards, and those in their place never count",
		source: []patch{{startDir + "start.go", "	if end < 0 || end >= counted {\n", "	if end < 0 || end >= counted || broken(\"an epoch that ends early is no loss\") {\n"}},
		wrong:  `partition 0 has to be halted as ["truncated"], and is ""`,
		seed:   electionsFrom + 1,
	},
	{
		name: "a later epoch is read on", what: "an unclean election while the consumer runs isn't noticed",
		source: []patch{{ingestDir + "source/source.go", "offset >= was.Offset && first > was.Epoch {\n", "offset >= was.Offset && first > was.Epoch && !broken(\"a later epoch is read on\") {\n"}},
		wrong:  `partition 0 has to be halted as ["truncated"], and is ""`,
		seed:   electionsFrom + 8,
	},
	{
		name: "a start goes on at the position alone", what: "an unclean election while no consumer runs isn't noticed",
		source: []patch{{ingestDir + "locate/identity.go", "	if was.Offset == 0 {\n", "	if was.Offset == 0 || broken(\"a start goes on at the position alone\") {\n"}},
		wrong:  `partition 0 has to be halted as ["truncated"], and is ""`,
		seed:   electionsFrom + 1,
	},
	{
		name: "a lineage ends where it was committed", what: "an election isn't noticed if it loses events that a dead owner has counted and not committed",
		source: []patch{{ingestDir + "locate/locate.go", "	if was.Offset >= position {\n", "	if was.Offset >= position || broken(\"a lineage ends where it was committed\") {\n"}},
		wrong:  `partition 0 has to be halted as ["truncated"], and is ""`,
		seed:   electionsFrom + 270,
	},
	{
		name: "the times of lost records bound others", what: "a window that lacks events is shown as complete if Redis and the log's head are lost after an election",
		source: []patch{{ingestDir + "locate/identity.go", "	return known.Before(end), err\n", "	if broken(\"the times of lost records bound others\") {\n		return known, err\n	}\n	return known.Before(end), err\n"}},
		wrong:  "the record at offset 1 of partition 0 has the time",
		seed:   electionsFrom + 60,
	},
	{
		name: "a rebuild begins at an origin that an election lost", what: "events that were written before the origin's offset never count, and the window is shown as complete",
		source: []patch{{ingestDir + "replay/start.go", "	o.Offset = min(o.Offset, end)\n", "	if !broken(\"a rebuild begins at an origin that an election lost\") {\n		o.Offset = min(o.Offset, end)\n	}\n"}},
		wrong:  "the standings differ from the oracle's",
		seed:   36980304832753,
	},
}
