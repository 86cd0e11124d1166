package simulate

import (
	"slices"
	"testing"
)

// Broken variants of the product. The simulation must notice every one of them. A patch to Go code
// replaces a text in an overlay that only the tests' build sees, so the product has no switch for it.
// A patch to a script is applied when the simulated server receives the script.
//
// The replaced text must occur exactly once in its file. Therefore a patch can't become stale
// unnoticed.

// broken is one broken variant.
type broken struct {
	name   string
	what   string // the harm that the variant would do
	source []patch
	script []patch // all to the same script
	wrong  string  // the beginning of the expected failure, compared by kindOf
	seed   int64   // of the world that notices the variant; -find looks for one
	// small is for variants that worlds from seeds rarely notice. It returns the world of a small plan,
	// which seed then numbers, or nil if the number has no world.
	small func(t *testing.T, n int64) *world
}

// patch replaces the text old by new in a file. Patched Go code calls broken(name), because one build
// contains all variants.
type patch struct{ file, old, new string }

const (
	ingestDir = "internal/ingest/"
	foldDir   = ingestDir + "fold/"
	startDir  = ingestDir + "start/"
	rulesDir  = "internal/rules/"
)

var allBroken = slices.Concat(brokenShards, brokenRepeats, brokenRules, brokenNames, brokenBans, brokenSeals, brokenZones, brokenElections, brokenAdded, []broken{
	{
		name: "commit before apply", what: "the offset is committed before the events count: who finds Redis empty believes it",
		source: []patch{{
			ingestDir + "sweeper.go", "	lanes := s.lanes[:0:0]\n",
			`	lanes := s.lanes[:0:0]
	if broken("commit before apply") {
		s.commits.At(s.Topic, s.Number, b.To(), s.trail)
	}
`,
		}},
		wrong: "offset 1 of partition 0 is committed",
		seed:  3,
	},
	{
		name: "one lateness", what: "a period's windows take events for as long as those of another",
		source: []patch{{
			foldDir + "rules.go", "switch lateness := r.Periods[i].Lateness; {",
			"switch lateness := r.Periods[map[bool]int{false: i}[broken(\"one lateness\")]].Lateness; {",
		}},
		wrong: "the standings differ from the oracle's",
		seed:  42,
	},
	{
		name: "early is late", what: "an event that no period has begun for is counted as late",
		source: []patch{{foldDir + "rules.go", "\t\treturn Early\n", "\t\treturn map[bool]Result{false: Early, true: Late}[broken(\"early is late\")]\n"}},
		wrong:  "the processes count 1 applied,",
		seed:   14,
	},
	{
		name: "a piece that is in is read again", what: "events of a call that timed out are in nobody's applied, although its sender asked again",
		source: []patch{{
			"internal/ranking/apply.go", "	if a.Outcome == ledger.Moved && a.Found == p.Next.String() {\n",
			"	if a.Outcome == ledger.Moved && a.Found == p.Next.String() && !broken(\"a piece that is in is read again\") {\n",
		}},
		wrong: "the processes count 1 applied,",
		seed:  2984,
	},
	{
		name: "ledger not compared", what: "the script adds whatever it is given",
		script: []patch{{"apply.lua", "if found ~= expected then return", "if not found then return"}},
		wrong:  "the standings differ from the oracle's",
		seed:   28,
	},
	{
		name: "at least instead of equal", what: "the script adds where the ledger stands further on, too",
		script: []patch{{
			"apply.lua", "if found ~= expected then return",
			`local function number(p) return tonumber(string.match(p, '^%d+')) or -1 end
if not found or number(found) < number(expected) then return`,
		}},
		wrong: "the standings differ from the oracle's",
		seed:  28,
	},
	{
		name: "retry without the fence", what: "who asks again, because no answer came, isn't compared with what the first try wrote",
		script: []patch{{"apply.lua", "if found ~= expected then return", "if found ~= expected and found ~= ARGV[3] then return"}},
		wrong:  "the standings differ from the oracle's",
		seed:   28,
	},
	{
		name: "torn write not marked", what: "a script that died midway leaves the ledger as it was: the piece is added again",
		script: []patch{{"apply.lua", "call('HSET', ledger, field, 'torn:' .. expected)\n", ""}},
		wrong:  "the standings differ from the oracle's",
		seed:   3,
	},
	{
		name: "next is last plus one", what: "the position behind what carries nothing (markers, aborted events, what compaction took) is never reached",
		source: []patch{
			{ingestDir + "reader.go", "	resp.Read(&r.records, from)\n", "	resp.Read(&r.records, from)\n	last := from - 1\n"},
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
		wrong: "it never comes to rest",
		seed:  2,
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
		wrong: "the standings differ from the oracle's",
		seed:  16,
	},
	{
		name: "piece takes the hash bound itself", what: "the member at the bound is in, and the ledger says that it isn't",
		source: []patch{{
			foldDir + "pieces.go", "Hash: p.batch.table.member(i).hash, Rules: p.batch.rules}\n",
			`Hash: p.batch.table.member(i).hash, Rules: p.batch.rules}
		if broken("piece takes the hash bound itself") {
			p.piece.Next.Hash = last
		}
`,
		}},
		wrong: "the standings differ from the oracle's",
		seed:  56,
	},
	{
		name: "takeover forgets the sweep's end", what: "it reads on past the end, where the next batch begins",
		source: []patch{{
			ingestDir + "reading.go", "			offset, err = r.foldOnce(ctx, b, resp, offset, r.reading.To)\n",
			`			end := r.reading.To
			if broken("takeover forgets the sweep's end") {
				end = -1
			}
			offset, err = r.fold(ctx, b, resp, offset, end)
`,
		}},
		wrong: "the standings differ from the oracle's",
		seed:  151,
	},
	{
		name: "takeover forgets the sweep's hash", what: "it adds the members again that are in already",
		source: []patch{
			{foldDir + "batch.go", "	case e.Offset < s.from, e.Hash < s.repeated:\n", "	case e.Offset < s.from, e.Hash < s.repeated && !broken(\"takeover forgets the sweep's hash\"):\n"},
			{foldDir + "batch.go", "	case s.through, e.Hash < s.low: //", "	case s.through, e.Hash < s.low && !broken(\"takeover forgets the sweep's hash\"): //"},
			{foldDir + "pieces.go", "	p.walk.seek(max(at.Hash, p.batch.shards.From(p.shard)))\n", `	from := max(at.Hash, p.batch.shards.From(p.shard))
	if broken("takeover forgets the sweep's hash") {
		from = p.batch.shards.From(p.shard)
	}
	p.walk.seek(from)
`},
		},
		wrong: "the standings differ from the oracle's",
		seed:  56,
	},
	{
		name: "worker stops when the ledger is ahead", what: "its own late call, or a zombie's, stops the partition until the next rebalance",
		source: []patch{{
			ingestDir + "worker.go", "	if errors.Is(err, errMoved) {\n",
			`	if moved, is := errors.AsType[*movedError](err); is && moved.cause() == counts.MoveAdvanced && broken("worker stops when the ledger is ahead") {
		<-ctx.Done()
		return false
	}
	if errors.Is(err, errMoved) {
`,
		}},
		wrong: "it never comes to rest",
		seed:  1333,
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
		wrong: "it never comes to rest",
		seed:  3,
	},
	{
		name: "dead letters only by who ends the sweep", what: "who crashes after its last piece, and before it wrote them, leaves none",
		source: []patch{
			{
				ingestDir + "deadletter/writer.go", "// Forget drops what was gathered",
				`type DeadLetter = deadLetter

func (w *Writer) Take() []deadLetter { return slices.Clone(w.deadLetters) }

func (w *Writer) Give(all []deadLetter) { w.deadLetters = all }

// Forget drops what was gathered`,
			},
			{ingestDir + "deadletter/writer.go", "import (\n", "import (\n	\"slices\"\n"},
			{ingestDir + "handoff.go", "import (\n", "import (\n	\"github.com/standings/standings/internal/ingest/deadletter\"\n"},
			{
				ingestDir + "handoff.go", "	trail   trail.Trail // at the batch's end\n",
				"	trail   trail.Trail // at the batch's end\n	deadLetters []deadletter.DeadLetter\n",
			},
			{
				ingestDir + "reader.go", "		b.MoveTo(end)\n		if flushed",
				`		b.MoveTo(end)
		if broken("dead letters only by who ends the sweep") {
			b.deadLetters = append(b.deadLetters, r.deadLetters.Take()...)
			r.deadLetters.Forget()
		}
		if flushed`,
			},
			{
				ingestDir + "sweeper.go", "	s.status.Swept(b.newest, wrote)\n",
				`	if again, ok := s.refuser.refused.(*rereader); ok && !s.positions().Sweeping() && len(b.deadLetters) > 0 {
		writer := again.outbox.Writer(s.status.Writing)
		writer.Give(b.deadLetters)
		b.deadLetters = nil
		if err := writer.Flush(ctx); err != nil {
			return err
		}
	}
	s.status.Swept(b.newest, wrote)
`,
			},
		},
		wrong: "the event at 0/1 is bad",
		seed:  113,
	},
	{
		name: "start resolved per partition", what: "partitions of one topic start at different times",
		source: []patch{
			{ingestDir + "locate/begin.go", "	\"fmt\"\n", "	\"fmt\"\n	\"maps\"\n"},
			{
				ingestDir + "locate/begin.go", "	if s == start.Recover {\n		log.Warn(",
				`	if broken("start resolved per partition") {
		set = slices.DeleteFunc(set, func(b ledger.StartPosition) bool { return b.Partition != l.Partition })
		maps.DeleteFunc(offsets, func(p int, _ commits.Progress) bool { return p != l.Number })
	}
	if s == start.Recover {
		log.Warn(`,
			},
			{ingestDir + "locate/begin.go", "	if start.AllHaveTopic(states, l.Topic) {\n		return ErrAgain", "	if start.AllHaveTopic(states, l.Topic) && !broken(\"start resolved per partition\") {\n		return ErrAgain"},
			{
				startDir + "start.go", "	case f.Others:\n",
				`	case f.Others && broken("start resolved per partition"):
		return Decision{Step: Begin}, nil
	case f.Others:
`,
			},
		},
		wrong: "the start of 1 partitions was resolved",
		seed:  3,
	},
	{
		name: "end asked after the time", what: "what is published between the two questions is never read",
		source: []patch{{
			ingestDir + "locate/resolve.go", "	all := make([]start.Beginning, partitions)\n",
			`	if broken("end asked after the time") {
		if logs, err = kafkaconn.Logs(ctx, r.Kafka, r.Topic, kafkaconn.UpTo(partitions)...); err != nil {
			return nil, err
		}
	}
	all := make([]start.Beginning, partitions)
`,
		}},
		wrong: "partition 0 starts at offset",
		seed:  121,
	},
	{
		name: "swap at least the live ledger", what: "a swap that comes after its hold has lapsed forgets what has counted since",
		source: []patch{{
			"internal/ranking/shadow/swap.go", "denotes(at) != p.Shadow[field] {\n", "denotes(at) != p.Shadow[field] && !broken(\"swap at least the live ledger\") {\n",
		}},
		script: []patch{
			{"swap.lua", "if (call('GET', KEYS[1]) or '') ~= ARGV[1] then return {'unheld'} end\n", ""},
			{
				"swap.lua", "if shadow ~= at or found ~= '' and not may or not takesOver and found ~= seen then return {'moved', name, found, shadow} end\n",
				`local function number(p) return tonumber(string.match(p, '^%d+')) or -1 end
  if shadow ~= at or found ~= '' and number(denotes) < number(shadow) then return {'moved', name, found, shadow} end
  if number(denotes) > number(shadow) then ARGV[i + 2] = denotes end
`,
			},
		},
		wrong: "the standings differ from the oracle's",
		seed:  72,
	},
	{
		name: "a rebuild without a pause moves the ledger back unseen", what: "boards that a rebuild moved back are shown as whole",
		script: []patch{{"swap.lua", "for name, to in pairs(refills) do call('HSET', KEYS[13], name, to) end\n", ""}},
		wrong:  "a half board is shown and not as refilling while a lost Redis is filled again",
		seed:   2849,
	},
	{
		name: "a rebuild without a pause overlooks a window", what: "events count twice in a window that was listed after the rebuild had read the listing",
		script: []patch{{"swap.lua", "if takesOver and call('HLEN', KEYS[6]) ~= tonumber(ARGV[9]) then return {'again'} end\n", ""}},
		wrong:  "the standings differ from the oracle's",
		seed:   1400,
	},
	{
		name: "abort marker ends nothing", what: "what an aborted producer commits later is taken for aborted",
		source: []patch{{
			"internal/kafkaconn/recordbatch/aborted.go", "r.isOpen(i, producer); i-- {", "r.isOpen(i, producer) && !broken(\"abort marker ends nothing\"); i-- {",
		}},
		wrong: "the standings differ from the oracle's",
		seed:  31,
	},
	{
		name: "windows live for ever", what: "boards whose life is over are written, and looked for where they are gone",
		script: []patch{
			{"apply.lua", "  w.live = now < l.expires\n", "  w.live = true\n"},
		},
		wrong: "partition 0 is halted as",
		seed:  6,
	},
	{
		name: "on_gap: halt not heeded", what: "events that are gone from the log are gone over, and nobody said that they may be",
		source: []patch{
			{startDir + "start.go", "	case onGap == GapHalts:\n", "	case onGap == GapHalts && !broken(\"on_gap: halt not heeded\"):\n"},
			{startDir + "start.go", "		if f.Log.Start > 0 && onGap == GapHalts {\n", "		if f.Log.Start > 0 && onGap == GapHalts && !broken(\"on_gap: halt not heeded\") {\n"},
		},
		wrong: "partition 0 goes over a gap",
		seed:  239,
	},
	{
		name: "gap skipped to the log's end", what: "what the log still has isn't counted",
		source: []patch{{
			startDir + "start.go", "	return Decision{Skip, at}, nil\n",
			`	if broken("gap skipped to the log's end") {
		at = ledger.At(f.Log.End)
	}
	return Decision{Skip, at}, nil
`,
		}},
		wrong: "partition 0 goes over a gap",
		seed:  278,
	},
	{
		name: "overflow without excess", what: "a member is refused whose points are in range",
		script: []patch{{"layouts.lua", "      if packed < 0 or packed > most then refuse('overflow', id) end", "      if packed < 0 or packed > most or packed - bias == 37 then refuse('overflow', id) end"}},
		wrong:  "a dead letter says that",
		seed:   25,
	},
	{
		name: "no look for an evicted board", what: "a board that Redis evicted begins anew, with what comes now",
		script: []patch{{"apply.lua", " or listing and w.begins and not w.sets then return {'lost', name} end\n", " then return {'lost', name} end\n"}},
		wrong:  "a piece begins lb:{0}:",
		seed:   320,
	},
	{
		name: "torn taken for its position", what: "a piece of which a part was written is added again",
		script: []patch{{"apply.lua", "if found ~= expected then return", "if found ~= expected and found ~= 'torn:' .. expected then return"}},
		source: []patch{
			{
				startDir + "start.go", "	at, err := ledger.Parse(f.Found)\n",
				`	at, err := ledger.Parse(f.Found)
	if broken("torn taken for its position") && f.Found != "" {
		at, err = ledger.Counted(f.Found)
	}
`,
			},
			{ingestDir + "lane.go", "	if found != l.at.String() {\n", "	if found != l.at.String() && !(broken(\"torn taken for its position\") && found == ledger.Torn(l.at)) {\n"},
		},
		wrong: "a piece counts on the torn ledger",
		seed:  118,
	},
	{
		name: "boards don't expire", what: "Redis fills up with windows whose life is over",
		script: []patch{{"apply.lua", "    if w.begins then call('PEXPIREAT', w.key, expires) end\n", ""}},
		wrong:  "the expiries differ from the oracle's",
		seed:   1,
	},
	{
		name: "latest is the log's start", what: "what was published before the first start counts, and mustn't",
		source: []patch{{
			startDir + "complete.go", "	case FromLatest:\n		at = b.Log.End\n",
			`	case FromLatest:
		at = b.Log.End
		if broken("latest is the log's start") {
			at = b.Log.Start
		}
`,
		}},
		wrong: "partition 0 starts at offset",
		seed:  1,
	},
	{
		name: "a time is the log's start", what: "what is from before the time that was asked for counts, and mustn't",
		source: []patch{{
			startDir + "complete.go", "			at = b.Since\n",
			`			at = b.Since
			if broken("a time is the log's start") {
				at = b.Log.Start
			}
`,
		}},
		wrong: "partition 0 starts at offset",
		seed:  3,
	},
	{
		name: "one hash, one member", what: "two members whose ids have one hash are taken for one",
		source: []patch{{
			foldDir + "table.go", "			if bytes.Equal(t.id(m), id) {",
			`			if bytes.Equal(t.id(m), id) || broken("one hash, one member") {`,
		}},
		wrong: "the standings differ from the oracle's",
		seed:  25,
	},
	{
		name: "dead letters are given up", what: "a bad event whose dead letter can't be written for a while leaves none",
		source: []patch{{
			ingestDir + "deadletter/write.go", "			w.outbox.Tries.Add(1)\n			if err := wait.Next(ctx); err != nil {",
			`			if broken("dead letters are given up") && errors.Is(err, kafka.NotLeaderForPartition) {
				return nil
			}
			w.outbox.Tries.Add(1)
			if err := wait.Next(ctx); err != nil {`,
		}},
		wrong: "the event at 0/1 is bad",
		seed:  20,
	},
	{
		name: "empty is the end", what: "an answer without records is taken for the log's end, in the middle of a sweep",
		source: []patch{{
			ingestDir + "reading.go", "		resp, err := r.source.Fetch(ctx, offset)\n",
			`		resp, err := r.source.Fetch(ctx, offset)
		if err == nil && len(resp.Records) == 0 && broken("empty is the end") {
			break
		}
`,
		}},
		wrong: "the standings differ from the oracle's",
		seed:  126,
	},
	{
		name: "throttled is malformed", what: "a throttled answer, which has no topics, halts its partition",
		source: []patch{{
			"internal/kafkaconn/fetch/response.go", "	case topics == 0 && throttled > 0:",
			`	case topics == 0 && throttled > 0 && !broken("throttled is malformed"):`,
		}},
		wrong: "process 1 halts a partition",
		seed:  123,
	},
	{
		name: "a reading starts over after an error", what: "who goes on with a sweep reads it from its beginning after every error, and never gets through",
		source: []patch{{
			ingestDir + "source/source.go", "			if err = HaltOfFetch(err, s.Field, offset); !Passes(err) {",
			`			if err = HaltOfFetch(err, s.Field, offset); !Passes(err) || broken("a reading starts over after an error") {`,
		}},
		wrong: "it never comes to rest",
		seed:  411,
	},
	{
		name: "the first record bounds what was before", what: "a late record at a log's head hides that what was deleted before it is missing",
		source: []patch{{startDir + "complete.go", "		if f.Appended {\n", "		if f.Appended || broken(\"the first record bounds what was before\") {\n"}},
		wrong:  "events are missing from a window",
		seed:   1308,
	},
	{
		name: "refilled from what is left", what: "a lost Redis is filled again from a log that lacks events, without a word",
		source: []patch{{startDir + "complete.go", "	return latest <= 0 || latest < asked\n", "	return latest <= 0 || latest < asked || broken(\"refilled from what is left\")\n"}},
		wrong:  "Redis was lost, and is",
		seed:   47,
	},
	{
		name: "a lost board reads as empty", what: "who shows a board whose key is gone shows one without members",
		script: []patch{{"read.lua", "  why, members = 'board_lost', 0\n", ""}},
		wrong:  "a board whose key",
		seed:   27,
	},
	{
		name: "dead letters are waited for while holding", what: "a partition whose dead letters can't be written keeps its memory, and others starve",
		source: []patch{{
			ingestDir + "deadletter/write.go", "if w.Once || tried > 1 && time.Since(began) >= tries {",
			`if w.Once || tried > 1 && time.Since(began) >= tries && !broken("dead letters are waited for while holding") {`,
		}},
		wrong: "a partition starves while",
		small: func(t *testing.T, _ int64) *world { return others(t, starving()) },
	},
	{
		name: "refilling isn't said", what: "who shows a board while a lost Redis is filled again shows half of it as whole",
		script: []patch{{"start.lua", "  if ARGV[2] == '' and ARGV[i + 4] ~= '' then\n", "  if ARGV[2] == '' and ARGV[i + 4] == '-' then\n"}},
		wrong:  "a half board is",
		seed:   765,
	},
	{
		name: "another topic's ledger is taken for its own", what: "a topic that comes later is taken for one whose partitions were added, and isn't begun as it was asked for",
		source: []patch{{
			startDir + "start.go", "i >= 0 && field[:i] == topic\n",
			`i >= 0 && (field[:i] == topic || broken("another topic's ledger is taken for its own"))
`,
		}},
		wrong: "the start of 1 partitions was resolved",
		seed:  3,
	},
	{
		name: "a topic that hasn't begun isn't said", what: "a lost Redis is filled again from one topic, and nobody says that the other's events are missing",
		source: []patch{{
			"internal/ledger/workers/progress.go", "		if !begun && (len(st.Ledger) > 0 || st.Schema != \"\") {\n",
			"		if !begun && (len(st.Ledger) > 0 || st.Schema != \"\") && !broken(\"a topic that hasn't begun isn't said\") {\n",
		}},
		wrong: "a half board is",
		small: func(t *testing.T, _ int64) *world { return live(t, oneTopicHalts()) },
	},
	{
		name: "max_windows counts a piece's own", what: "every piece may open as many windows as there may be in all",
		script: []patch{{"apply.lua", "call('HLEN', listings), nil", "0, nil"}},
		wrong:  "boards that had no window",
		seed:   1000,
	},
	{
		name: "new boards open windows in the last tenth", what: "events that name new boards keep a new week of the others from starting",
		script: []patch{{"apply.lua", "w.beyond = not opened and string.sub(told, i, i) ~= '1'", ""}},
		wrong:  "boards that had no window",
		seed:   1000,
	},
	{
		name: "dropped boards are opened again", what: "the next event opens a dropped board, which then looks whole and isn't",
		script: []patch{{"apply.lua", "call('HGET', dropped, name) or ", ""}},
		wrong:  "the standings differ from the oracle's",
		seed:   8000,
	},
	{
		name: "a rebuild removes one batch", what: "of what a rebuild leaves behind all but some hundred keys stay until they expire",
		source: []patch{{"internal/ranking/pages.go", "		if done == len(keys) {\n", "		if done == len(keys) || broken(\"a rebuild removes one batch\") {\n"}},
		wrong:  "a rebuild has ended",
		seed:   3000,
	},
	{
		name: "the listing is read in one call", what: "Redis stands still while somebody reads which windows there are",
		source: []patch{{
			"internal/ranking/pages.go", "s.client.HScan(ctx, key, cursor, \"\", listedAtOnce).Result()",
			`s.client.HScan(ctx, key, cursor, "", map[bool]int64{false: listedAtOnce, true: 1 << 30}[broken("the listing is read in one call")]).Result()`,
		}},
		wrong: "a call has to",
		seed:  1000,
	},
})
