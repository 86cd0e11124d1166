package main

import (
	"fmt"
	"testing"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/clitest"
)

func TestAWindowOfSeveralShardsIsListedOnce(t *testing.T) {
	w := clitest.StandingsIn(t, 5, 0)
	var members []ledger.Member
	for i := range 100 {
		members = append(members, clitest.Member(fmt.Sprint("m", i), 1, ""))
	}
	w.Add(t, "global", members...)
	w.Add(t, "eu", members[:1]...)
	w.Add(t, "us", members...)
	w.Reader.Client.Del(t.Context(), w.Shards[3].Keys().Listed("us:weekly:"+clitest.Window))
	l := &listing{environ: w.Environ}
	l.lists(t, `
BOARD   PERIOD  WINDOW    START             END               MEMBERS
eu      weekly  2100-W10  2100-03-08 00:00  2100-03-15 00:00        1
global  weekly  2100-W10  2100-03-08 00:00  2100-03-15 00:00      100
us      weekly  2100-W10  2100-03-08 00:00  2100-03-15 00:00     gone

3 boards, 3 windows
`)
}
