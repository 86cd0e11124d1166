package simulate

// This file gives members names. A member's name comes from the latest of their events that count,
// whichever process counts them.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/test/oracle"
)

const membersCalled = "members that are called something"

// name adds names to most events. Few names and times make many events with equal times.
func (p *plan) name() {
	for _, s := range p.setup.Processes {
		if s.foldMemory < 1<<20 || p.setup.Less > 0 {
			return // longer records do not fit
		}
	}
	d := &drawer{Rand: rand.New(rand.NewPCG(uint64(p.seed), 0x4a3e))}
	p.setup.Names = true
	for i := range p.sendings {
		all := p.sendings[i].records
		for j := range all {
			if at := bytes.Index(all[j].value, []byte(`"user_id":`)); at > 0 && bytes.HasSuffix(all[j].value, []byte("}")) && d.IntN(4) > 0 {
				name := pick(d, `"Ada"`, `"ada"`, `"B b"`, `"é"`, "null", `"7 7 \u0000"`)
				all[j].value = fmt.Appendf(nil, `%s"name":%s,%s`, all[j].value[:at], name, all[j].value[at:])
			}
		}
	}
}

// names makes a process count names.
func (p *process) names(c *ingest.Config) {
	if !p.w.setup.Names {
		return
	}
	fields, err := event.NewFields(event.Paths{Name: "name"})
	if err != nil {
		panic(err)
	}
	c.Events.Fields, c.Rules.Names = fields, true
}

// checkNames compares the members' names. An expired name may remain.
func (sh *shard) checkNames(want map[string]string) {
	w := sh.w
	if !w.setup.Names {
		return
	}
	got := map[string]string{}
	for member, text := range sh.hash(namesKey) {
		words := strings.SplitN(text, " ", 3)
		if len(words) < 3 {
			w.failf("%q is called %q%s", member, text, sh.named())
			return
		}
		until, err := strconv.ParseInt(words[1], 10, 64)
		if _, there := want[member]; err == nil && !there && until <= w.now().UnixMilli() {
			continue // expired, but not necessarily removed yet
		}
		got[member] = words[0] + " " + words[2]
	}
	var d oracle.Differences
	d.Texts("names", want, got)
	if text := d.String(); text != "" {
		w.failf("what members are called differs from the oracle's%s:\n%s", sh.named(), text)
	}
	w.counts[membersCalled] += len(want)
}
