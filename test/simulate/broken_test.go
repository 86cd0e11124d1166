package simulate

import "testing"

// Ways to break the product, each of which the simulation has to notice. A patch to Go
// is text that takes another's place, in an overlay that only the tests' build sees: the
// product has no switch for it. A patch to a script is made as the server takes it.
//
// The text that is replaced has to stand in its file exactly once, so that none of this
// can rot unseen.

// broken is one way.
type broken struct {
	name   string
	what   string // would go wrong
	source []patch
	script []patch // of one script
	wrong  string  // how what is wrong begins, as kindOf has it, in the world that notices
	within int     // worlds, in the order of their seeds, of which one has to notice
	// alone is a world of its own that has to notice, for what takes more than a seed's have.
	alone func(*testing.T) *world
}

// patch is a text and what takes its place. Go asks broken(name) there, since one build
// holds all ways.
type patch struct{ file, old, new string }

const (
	ingestDir = "internal/ingest/"
	foldDir   = ingestDir + "fold/"
)

var allBroken = []broken{
	{
		name: "commit before apply", what: "the offset is committed before the events count: who finds Redis empty believes it",
		source: []patch{{
			ingestDir + "sweeper.go", "	s.pieces.Reset(b.Batch, s.topic, s.partition)\n",
			`	s.pieces.Reset(b.Batch, s.topic, s.partition)
	if broken("commit before apply") {
		s.commits.at(s.topic, s.partition, b.To(), s.trail)
	}
`,
		}},
		wrong:  "offset 1 of partition 0 is committed",
		within: 100,
	},
	{
		name: "ledger not compared", what: "the script adds whatever it is given",
		script: []patch{{"apply.lua", "if found ~= expected then return", "if not found then return"}},
		wrong:  "the standings differ from the oracle's",
		within: 200,
	},
	{
		name: "at least instead of equal", what: "the script adds where the ledger stands further on, too",
		script: []patch{{
			"apply.lua", "if found ~= expected then return",
			`local function number(p) return tonumber(string.match(p, '^%d+')) or -1 end
if not found or number(found) < number(expected) then return`,
		}},
		wrong:  "the standings differ from the oracle's",
		within: 200,
	},
	{
		name: "retry without the fence", what: "who asks again, because no answer came, isn't compared with what the first try wrote",
		script: []patch{{"apply.lua", "if found ~= expected then return", "if found ~= expected and found ~= ARGV[3] then return"}},
		wrong:  "the standings differ from the oracle's",
		within: 200,
	},
	{
		name: "torn write not marked", what: "a script that died midway leaves the ledger as it was: the piece is added again",
		script: []patch{{"apply.lua", "call('HSET', ledger, field, 'torn:' .. expected)\n", ""}},
		wrong:  "the standings differ from the oracle's",
		within: 200,
	},
	{
		name: "next is last plus one", what: "the position behind what carries nothing (markers, aborted events, what compaction took) is never reached",
		source: []patch{
			{ingestDir + "reader.go", "	r.records.Reset(resp.Records, from, resp.Aborted)\n", "	r.records.Reset(resp.Records, from, resp.Aborted)\n	last := from - 1\n"},
			{
				ingestDir + "reader.go", "			return r.ended(end, err)\n		}\n",
				`			if broken("next is last plus one") && errors.Is(err, io.EOF) {
				return last + 1, nil
			}
			return r.ended(end, err)
		}
		last = rec.Offset
`,
			},
		},
		wrong:  "it never comes to rest",
		within: 200,
	},
	{
		name: "sweep out of hash order", what: "the ledger says that members below a hash are in, and some aren't",
		source: []patch{{
			foldDir + "order.go", "	if w.half {\n		i += 1 << t.level\n",
			`	if broken("sweep out of hash order") {
		i = w.prefix
	}
	if w.half {
		i += 1 << t.level
`,
		}},
		wrong:  "the standings differ from the oracle's",
		within: 500,
	},
	{
		name: "piece takes the hash bound itself", what: "the member at the bound is in, and the ledger says that it isn't",
		source: []patch{{
			foldDir + "pieces.go", "Hash: p.batch.table.member(i).hash}\n",
			`Hash: p.batch.table.member(i).hash}
		if broken("piece takes the hash bound itself") {
			p.piece.Next.Hash = last
		}
`,
		}},
		wrong:  "the standings differ from the oracle's",
		within: 500,
	},
	{
		name: "takeover forgets the sweep's end", what: "it reads on past the end, where the next batch begins",
		source: []patch{{
			ingestDir + "resume.go", "			offset, err = r.fold(ctx, b, resp, offset, at.To)\n",
			`			end := at.To
			if broken("takeover forgets the sweep's end") {
				end = -1
			}
			offset, err = r.fold(ctx, b, resp, offset, end)
`,
		}},
		wrong:  "the standings differ from the oracle's",
		within: 500,
	},
	{
		name: "takeover forgets the sweep's hash", what: "it adds the members again that are in already",
		source: []patch{
			{foldDir + "batch.go", "	case e.Hash < b.repeated:\n", "	case e.Hash < b.repeated && !broken(\"takeover forgets the sweep's hash\"):\n"},
			{foldDir + "batch.go", "	case e.Hash < b.low: //", "	case e.Hash < b.low && !broken(\"takeover forgets the sweep's hash\"): //"},
		},
		wrong:  "the standings differ from the oracle's",
		within: 500,
	},
	{
		name: "worker stops when the ledger is ahead", what: "its own late call, or a zombie's, stops the partition until the next rebalance",
		source: []patch{{
			ingestDir + "worker.go", "	if errors.Is(err, errMoved) {\n",
			`	if moved, is := errors.AsType[*movedError](err); is && moved.cause() == MoveAdvanced && broken("worker stops when the ledger is ahead") {
		<-ctx.Done()
		return false
	}
	if errors.Is(err, errMoved) {
`,
		}},
		wrong:  "it never comes to rest",
		within: 1500,
	},
	{
		name: "no look at the ledger when idle", what: "a Redis that went back isn't seen where no event follows",
		source: []patch{{
			ingestDir + "sweeper.go", "	look := time.NewTicker(lookEvery)\n",
			`	look := time.NewTicker(lookEvery)
	if broken("no look at the ledger when idle") {
		look.Stop()
	}
`,
		}},
		wrong:  "it never comes to rest",
		within: 500,
	},
	{
		name: "dead letters only by who ends the sweep", what: "who crashes after its last piece, and before it wrote them, leaves none",
		source: []patch{
			{
				ingestDir + "handoff.go", "	oldest  int64 // earliest record time that there is, ms; 0 without one\n",
				"	oldest  int64 // earliest record time that there is, ms; 0 without one\n	letters []letter\n",
			},
			{
				ingestDir + "reader.go", "		b.MoveTo(end)\n		if flushed",
				`		b.MoveTo(end)
		if broken("dead letters only by who ends the sweep") {
			b.letters = append(b.letters, r.letters.letters...)
			r.letters.forget()
		}
		if flushed`,
			},
			{
				ingestDir + "sweeper.go", "	s.swept(b.newest)\n",
				`	if letters := s.newLetters(s.writing); !s.at.Sweeping() && len(b.letters) > 0 {
		letters.letters, b.letters = b.letters, nil
		if err := letters.flush(ctx); err != nil {
			return err
		}
	}
	s.swept(b.newest)
`,
			},
		},
		wrong:  "the event at 0/1 is bad",
		within: 500,
	},
	{
		name: "start resolved per partition", what: "partitions of one topic start at different times",
		source: []patch{
			{
				ingestDir + "locate.go", "	if s == recoverAll {\n		w.log.Warn(",
				`	if broken("start resolved per partition") {
		set = slices.DeleteFunc(set, func(b ledger.Beginning) bool { return b.Partition != w.partition })
		maps.DeleteFunc(offsets, func(p int, _ progress) bool { return p != w.partition })
	}
	if s == recoverAll {
		w.log.Warn(`,
			},
			{ingestDir + "locate.go", "		if topicOf(field) == w.topic {\n", "		if topicOf(field) == w.topic && !broken(\"start resolved per partition\") {\n"},
			{
				ingestDir + "start.go", "	case f.others:\n",
				`	case f.others && broken("start resolved per partition"):
		return decision{step: begin}, nil
	case f.others:
`,
			},
		},
		wrong:  "the start of 1 partitions was resolved",
		within: 200,
	},
	{
		name: "end asked after the time", what: "what is published between the two questions is never read",
		source: []patch{{
			ingestDir + "locate.go", "	all := make([]beginning, partitions)\n",
			`	if broken("end asked after the time") {
		if logs, err = w.kafka.bounds(ctx, w.topic, upTo(partitions)...); err != nil {
			return nil, err
		}
	}
	all := make([]beginning, partitions)
`,
		}},
		wrong:  "partition 0 starts at offset",
		within: 1000,
	},
	{
		name: "swap at least the live ledger", what: "a swap that comes after its hold has lapsed forgets what has counted since",
		source: []patch{{
			"internal/ranking/swap.go", "denotes(at) != p.Shadow[field] {\n", "denotes(at) != p.Shadow[field] && !broken(\"swap at least the live ledger\") {\n",
		}},
		script: []patch{
			{"swap.lua", "if call('GET', KEYS[1]) ~= ARGV[1] then return {'unheld'} end\n", ""},
			{
				"swap.lua", "if found ~= seen or shadow ~= at or found ~= '' and denotes ~= shadow then return {'moved', name, found, shadow} end\n",
				`local function number(p) return tonumber(string.match(p, '^%d+')) or -1 end
  if shadow ~= at or found ~= '' and number(denotes) < number(shadow) then return {'moved', name, found, shadow} end
  if number(denotes) > number(shadow) then ARGV[i + 2] = denotes end
`,
			},
		},
		wrong:  "the standings differ from the oracle's",
		within: 1500,
	},
	{
		name: "abort marker ends nothing", what: "what an aborted producer commits later is taken for aborted",
		source: []patch{{
			ingestDir + "recordbatch/aborted.go", "r.isOpen(i, producer); i-- {", "r.isOpen(i, producer) && !broken(\"abort marker ends nothing\"); i-- {",
		}},
		wrong:  "the standings differ from the oracle's",
		within: 500,
	},
	{
		name: "windows live for ever", what: "boards whose life is over are written, and looked for where they are gone",
		script: []patch{
			{"apply.lua", "    expires = tonumber(over) or math.huge\n    w.live = now < expires\n", "    expires = tonumber(over) or math.huge\n    w.live = true\n"},
			{"apply.lua", "  else\n    w.live = now < expires\n", "  else\n    w.live = true\n"},
		},
		wrong:  "partition 0 is halted as",
		within: 500,
	},
	{
		name: "on_gap: halt not heeded", what: "events that are gone from the log are gone over, and nobody said that they may be",
		source: []patch{
			{ingestDir + "start.go", "	case onGap == GapHalts:\n", "	case onGap == GapHalts && !broken(\"on_gap: halt not heeded\"):\n"},
			{ingestDir + "start.go", "		if f.log.start > 0 && onGap == GapHalts {\n", "		if f.log.start > 0 && onGap == GapHalts && !broken(\"on_gap: halt not heeded\") {\n"},
		},
		wrong:  "partition 0 goes over a gap",
		within: 700,
	},
	{
		name: "gap skipped to the log's end", what: "what the log still has isn't counted",
		source: []patch{{
			ingestDir + "start.go", "	return decision{skip, at}, nil\n",
			`	if broken("gap skipped to the log's end") {
		at = ledger.At(f.log.end)
	}
	return decision{skip, at}, nil
`,
		}},
		wrong:  "partition 0 goes over a gap",
		within: 700,
	},
	{
		name: "overflow without excess", what: "a member is refused whose points are in range",
		script: []patch{{"apply.lua", "    if p > max or p < -max then refuse('overflow', id) end", "    if p > max or p < -max or p == 37 then refuse('overflow', id) end"}},
		wrong:  "a dead letter says that",
		within: 100,
	},
	{
		name: "no look for an evicted board", what: "a board that Redis evicted begins anew, with what comes now",
		script: []patch{{"apply.lua", "    if listing and not there then return {'lost', name} end\n", ""}},
		wrong:  "a piece begins lb:{0}:",
		within: 700,
	},
	{
		name: "torn taken for its position", what: "a piece of which a part was written is added again",
		script: []patch{{"apply.lua", "if found ~= expected then return", "if found ~= expected and found ~= 'torn:' .. expected then return"}},
		source: []patch{
			{
				ingestDir + "start.go", "	at, err := ledger.Parse(f.found)\n",
				`	at, err := ledger.Parse(f.found)
	if broken("torn taken for its position") && f.found != "" {
		at, err = ledger.Counted(f.found)
	}
`,
			},
			{ingestDir + "sweeper.go", "	if found != s.at.String() {\n", "	if found != s.at.String() && !(broken(\"torn taken for its position\") && found == ledger.Torn(s.at)) {\n"},
		},
		wrong:  "a piece counts on the torn ledger",
		within: 1500,
	},
	{
		name: "boards don't expire", what: "Redis fills up with windows whose life is over",
		script: []patch{{"apply.lua", "    call('PEXPIREAT', w.key, w.expires)\n", ""}},
		wrong:  "the expiries differ from the oracle's",
		within: 20,
	},
	{
		name: "latest is the log's start", what: "what was published before the first start counts, and mustn't",
		source: []patch{{
			ingestDir + "complete.go", "	case FromLatest:\n		at = b.log.end\n",
			`	case FromLatest:
		at = b.log.end
		if broken("latest is the log's start") {
			at = b.log.start
		}
`,
		}},
		wrong:  "partition 0 starts at offset",
		within: 100,
	},
	{
		name: "a time is the log's start", what: "what is from before the time that was asked for counts, and mustn't",
		source: []patch{{
			ingestDir + "complete.go", "			at = b.since\n",
			`			at = b.since
			if broken("a time is the log's start") {
				at = b.log.start
			}
`,
		}},
		wrong:  "partition 0 starts at offset",
		within: 100,
	},
	{
		name: "one hash, one member", what: "two members whose ids have one hash are taken for one",
		source: []patch{{
			foldDir + "table.go", "			if bytes.Equal(t.id(m), id) {",
			`			if bytes.Equal(t.id(m), id) || broken("one hash, one member") {`,
		}},
		wrong:  "the standings differ from the oracle's",
		within: 200,
	},
	{
		name: "dead letters are given up", what: "a bad event whose dead letter can't be written for a while leaves none",
		source: []patch{{
			ingestDir + "deadletter.go", "			d.stats.KafkaTries.Add(1)\n			if err := wait.next(ctx); err != nil {",
			`			if broken("dead letters are given up") && errors.Is(err, kafka.NotLeaderForPartition) {
				return nil
			}
			d.stats.KafkaTries.Add(1)
			if err := wait.next(ctx); err != nil {`,
		}},
		wrong:  "the event at 0/1 is bad",
		within: 500,
	},
	{
		name: "empty is the end", what: "an answer without records is taken for the log's end, in the middle of a sweep",
		source: []patch{{
			ingestDir + "resume.go", "		resp, err := r.fetch(ctx, offset)\n",
			`		resp, err := r.fetch(ctx, offset)
		if err == nil && len(resp.Records) == 0 && broken("empty is the end") {
			break
		}
`,
		}},
		wrong:  "the standings differ from the oracle's",
		within: 1500,
	},
	{
		name: "throttled is malformed", what: "a throttled answer, which has no topics, halts its partition",
		source: []patch{{
			ingestDir + "fetch/response.go", "	case topics == 0 && throttled > 0:",
			`	case topics == 0 && throttled > 0 && !broken("throttled is malformed"):`,
		}},
		wrong:  "process 1 halts a partition",
		within: 300,
	},
	{
		name: "a reading starts over after an error", what: "who goes on with a sweep reads it from its beginning after every error, and never gets through",
		source: []patch{{
			ingestDir + "fetching.go", "			if err = unfetchable(err, r.field, offset); !passes(err) {",
			`			if err = unfetchable(err, r.field, offset); !passes(err) || broken("a reading starts over after an error") {`,
		}},
		wrong:  "it never comes to rest",
		within: 1500,
	},
	{
		name: "the first record bounds what was before", what: "a late record at a log's head hides that what was deleted before it is missing",
		source: []patch{{ingestDir + "complete.go", "		if f.appended {\n", "		if f.appended || broken(\"the first record bounds what was before\") {\n"}},
		wrong:  "events are missing from a window",
		within: 1000,
	},
	{
		name: "refilled from what is left", what: "a lost Redis is filled again from a log that lacks events, without a word",
		source: []patch{{ingestDir + "complete.go", "	return latest <= 0 || latest < asked\n", "	return latest <= 0 || latest < asked || broken(\"refilled from what is left\")\n"}},
		wrong:  "Redis was lost, and is",
		within: 1000,
	},
	{
		name: "a lost board reads as empty", what: "who shows a board whose key is gone shows one without members",
		script: []patch{{"read.lua", "elseif listing and members == 0 then\n  why = 'board_lost'\n", ""}},
		wrong:  "a board whose key",
		within: 1000,
	},
	{
		name: "dead letters are waited for while holding", what: "a partition whose dead letters can't be written keeps its memory, and others starve",
		source: []patch{{
			ingestDir + "deadletter.go", "if d.once || tried > 1 && time.Since(began) >= tries {",
			`if d.once || tried > 1 && time.Since(began) >= tries && !broken("dead letters are waited for while holding") {`,
		}},
		wrong: "a partition starves while",
		alone: func(t *testing.T) *world { return others(t, starving()) },
	},
	{
		name: "refilling isn't said", what: "who shows a board while a lost Redis is filled again shows half of it as whole",
		script: []patch{{"start.lua", "  if ARGV[2] == '' and ARGV[i + 4] ~= '' then\n", "  if ARGV[2] == '' and ARGV[i + 4] == '-' then\n"}},
		wrong:  "a half board is",
		within: 2000,
	},
}
