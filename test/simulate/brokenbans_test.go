package simulate

// Broken variants of hiding banned members.

const bansDir = "internal/bans/"

var brokenBans = []broken{
	{
		name: "a banned member counts in what is shown", what: "who earns something while banned is back on the boards",
		script: []patch{{"banned.lua", "is == 'hidden' and hide or show", "show"}},
		wrong:  "a banned member is in what is shown",
		seed:   7,
	},
	{
		name: "an unban loses what was earned meanwhile", what: "who is shown again has nothing",
		script: []patch{{"ban.lua", "      move(hidden, shown, member, unseen)\n", "      call('ZREM', hidden, member)\n"}},
		wrong:  "the standings differ from the oracle's",
		seed:   7,
	},
	{
		name: "an erased member's events count", what: "who is erased is on the boards again with the next event",
		script: []patch{{"banned.lua", "    if is ~= 'erased' then to[", "    do to["}},
		wrong:  "a banned member is in what is shown",
		seed:   29,
	},
	{
		name: "an erased member's standings stay", what: "who is erased is still on the boards, with what there was",
		script: []patch{{"ban.lua", "    if to == 'erased' then\n", "    if to == 'erased' and not (seen or unseen) then\n"}},
		wrong:  "a banned member is in what is shown",
		seed:   458,
	},
	{
		name: "of two bans one counts", what: "who is banned on a board and on all is shown once one of them ends",
		script: []patch{{"ban.lua", "ipairs({at, ':' .. member})", "ipairs({at})"}},
		wrong:  "a banned member is in what is shown",
		seed:   51,
	},
	{
		name: "a rebuild forgets bans", what: "after a rebuild everybody is shown",
		source: []patch{{
			"internal/ranking/shadow/swap.go", "	taken, changed, err := r.shadow.TakeBans(ctx, r.live, last)\n",
			`	if broken("a rebuild forgets bans") {
		return "", nil
	}
	taken, changed, err := r.shadow.TakeBans(ctx, r.live, last)
`,
		}},
		script: []patch{{"swap.lua", "if (call('HGET', KEYS[11], 'version') or '') ~= ARGV[7] then return {'banned'} end\n", ""}},
		wrong:  "a banned member is in what is shown",
		seed:   315,
	},
	{
		name: "what a worker reads first isn't brought in line", what: "in a Redis that was wiped events count before it is known who is banned",
		source: []patch{{
			bansDir + "keeper.go", "	if k.last() > before { //",
			`	if broken("what a worker reads first isn't brought in line") && k.last() > 0 && k.again.Add(1)%2 == 1 {
		return nil
	}
	if k.last() > before { //`,
		}, {bansDir + "keeper.go", "	woken    chan struct{}\n", "	woken    chan struct{}\n	again    atomic.Int64\n"}},
		wrong: "process 1 counts before it hides",
		seed:  480,
	},
	{
		name: "who hasn't read so far shows members", what: "of two replicas one shows whom the other has hidden",
		source: []patch{{
			bansDir + "keeper.go", "	if err := k.upToDate(within); err != nil {\n",
			`	if err := k.upToDate(within); err != nil && !broken("who hasn't read so far shows members") {
`,
		}, {bansDir + "follower.go", "	return f.Ready(ctx, log.End)\n", `	if broken("who hasn't read so far shows members") {
		return nil
	}
	return f.Ready(ctx, log.End)
`}},
		wrong: "a hidden member is shown again",
		seed:  73,
	},
	{
		name: "the bans topic isn't read to its end first", what: "who starts doesn't know yet who is banned, and counts",
		source: []patch{{bansDir + "follower.go", "		if !ready && at >= log.End {\n", "		if !ready && (at >= log.End || broken(\"the bans topic isn't read to its end first\")) {\n"}},
		wrong:  "process 1 starts and doesn't know",
		seed:   7,
	},
}
