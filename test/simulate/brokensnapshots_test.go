package simulate

// Ways to break the reading of snapshots, by the rules of internal/archive/snapshot.

const snapshotIsnt = "a snapshot isn't what the log says"

var brokenSnapshots = []broken{
	{
		name: "a snapshot's token isn't compared", what: "Redis that went back to before it has members on no page who were in by the first ledger",
		script: []patch{{"snapshot.lua", "if not begins and token ~= ARGV[1] then return {'lost'} end\n", ""}},
		wrong:  snapshotIsnt,
		from:   snapsFrom, within: 300, seed: snapsFrom + 21,
	},
	{
		name: "a token is set before the first position", what: "a Redis that goes back between the two has forgotten what the first ledger denotes",
		source: []patch{{
			"internal/ranking/snapshot.go", "	begin, _, err := sn.call(ctx, nil, \"begin\")\n",
			`	begin, _, err := sn.call(ctx, nil, "begin")
	if broken("a token is set before the first position") && err == nil {
		time.Sleep(time.Second) // it is paused
		begin, _, err = sn.call(ctx, nil, "look")
	}
`,
		}},
		wrong: snapshotIsnt,
		from:  snapsFrom, within: 300, seed: snapsFrom + 154,
	},
	{
		name: "a swap leaves a snapshot's token", what: "a window that was dropped is back, and what the first ledger denotes of it is on no page",
		script: []patch{{"swap.lua", "call('UNLINK', KEYS[1], KEYS[#KEYS])\n", "call('UNLINK', KEYS[1])\n"}},
		wrong:  snapshotIsnt,
		from:   snapsFrom, within: 300, seed: snapsFrom + 191,
	},
	{
		name: "bans that change while a window is read are passed over", what: "who is moved to the set that was read is on no page",
		source: []patch{{"internal/ranking/snapshotpages.go", "	if at.bans != w.bans ||", "	if at.bans != w.bans && !broken(\"bans that change while a window is read are passed over\") ||"}},
		wrong:  snapshotIsnt,
		from:   snapsFrom, within: 300, seed: snapsFrom + 79,
	},
	{
		name: "a window is begun while a ban moves its members", what: "who is moved to the set that was read is on no page",
		source: []patch{{"internal/ranking/snapshotpages.go", "	if version == \"\" ||", "	if broken(\"a window is begun while a ban moves its members\") || version == \"\" ||"}},
		wrong:  snapshotIsnt,
		from:   snapsFrom, within: 300, seed: snapsFrom + 43,
	},
	{
		name: "hidden members are left out of a snapshot", what: "whoever is shown again has lost all",
		source: []patch{{"internal/ranking/snapshotpages.go", "		if hides {\n", "		if hides && !broken(\"hidden members are left out of a snapshot\") {\n"}},
		wrong:  snapshotIsnt,
		from:   snapsFrom, within: 100, seed: snapsFrom + 1,
	},
	{
		name: "a window that is sealed between its pages isn't begun anew", what: "events are added that came when it was final",
		source: []patch{{
			"internal/ranking/snapshotpages.go", " || sealed {\n",
			" || sealed && !broken(\"a window that is sealed between its pages isn't begun anew\") {\n",
		}},
		wrong: snapshotIsnt,
		from:  snapsFrom, within: 300, seed: snapsFrom + 72,
	},
	{
		name: "a scan goes on in another process", what: "its cursor means nothing there, and members are on no page",
		source: []patch{{
			"internal/ranking/snapshotpages.go", "	return w.store.onOneServer(ctx, func() error {\n",
			`	onOneServer := w.store.onOneServer
	if broken("a scan goes on in another process") {
		onOneServer = func(_ context.Context, do func() error) error { return do() }
	}
	return onOneServer(ctx, func() error {
`,
		}},
		wrong: snapshotIsnt,
		from:  snapsFrom, within: 300, seed: snapsFrom + 20,
	},
	{
		name: "a page goes by the ledger of the one before", what: "events are added to rows that have them",
		source: []patch{{
			"internal/ranking/snapshotpages.go", "	first := !w.begun\n",
			`	if broken("a page goes by the ledger of the one before") {
		if before, now := w.Begin.Ledger, at.Ledger; before != nil {
			at.Ledger, w.Begin.Ledger = before, now
		}
	}
	first := !w.begun
`,
		}},
		wrong: snapshotIsnt,
		from:  snapsFrom, within: 100, seed: snapsFrom + 7,
	},
	{
		name: "pages are stretches of ranks", what: "who moves past the reader is on no page",
		script: []patch{{
			"snapshot.lua", "  local page = call('ZSCAN', ARGV[4] == 'hidden' and KEYS[10] or KEYS[9], ARGV[6], 'COUNT', ARGV[7])\n",
			`  local at = tonumber(ARGV[6])
  local page = {'0', call('ZREVRANGE', ARGV[4] == 'hidden' and KEYS[10] or KEYS[9], at, at + 2, 'WITHSCORES')}
  if #page[2] == 6 then page[1] = string.format('%.0f', at + 3) end
`,
		}},
		wrong: snapshotIsnt,
		from:  snapsFrom, within: 300, seed: snapsFrom + 29,
	},
	{
		name: "a window goes on that was sealed and reopened between two pages", what: "positions went on without it, and its second page is of those",
		source: []patch{{
			"internal/ranking/snapshotpages.go", " || page.record != w.record // or reopened",
			" || page.record != w.record && !broken(\"a window goes on that was sealed and reopened between two pages\") // or reopened",
		}},
		wrong: snapshotIsnt,
		from:  snapsFrom, within: 300, seed: snapsFrom + 1020,
	},
	{
		name: "a page is read of a torn shard", what: "nobody knows what of a piece is in it",
		script: []patch{{"snapshot.lua", "  if string.sub(ledger[i + 1], 1, 5) == 'torn:' then return {'torn', ledger[i]} end\n", ""}},
		wrong:  snapshotIsnt,
		from:   snapsFrom, within: 300, seed: snapsFrom + 48,
	},
	{
		name: "a page is read of a window that has lost a key", what: "its members are on no page, and come back as if they were new",
		script: []patch{{"snapshot.lua", "  if not whole(setsOf(listing), present(KEYS[9], KEYS[10])) then return {'missing'} end\n", ""}},
		wrong:  "a page is read of a window",
		from:   snapsFrom, within: 300, seed: snapsFrom + 5,
	},
	{
		name: "windows are listed before the first position", what: "one that is opened in between is on no page, with what the first ledger denotes",
		source: []patch{
			{"internal/ranking/snapshot.go", "	settled   string // the", "	early     map[string]string\n	settled   string // the"},
			{
				"internal/ranking/snapshot.go", "	begin, _, err := sn.call(ctx, nil, \"begin\")\n",
				`	if broken("windows are listed before the first position") {
		var err error
		if sn.early, err = s.ListingsBy(ctx, 0); err != nil {
			return nil, err
		}
		time.Sleep(time.Second) // it is paused
	}
	begin, _, err := sn.call(ctx, nil, "begin")
`,
			},
			{"internal/ranking/snapshotpages.go", "		listed, err := sn.store.ListingsBy(ctx, pause)\n", `		listed, err := sn.store.ListingsBy(ctx, pause)
		if broken("windows are listed before the first position") {
			listed = sn.early
		}
`},
		},
		wrong: snapshotIsnt,
		from:  snapsFrom, within: 300, seed: snapsFrom + 9,
	},
}
