package recordbatch

// Messages of the old formats in bytes that were laid down before there was a reader.

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Bytes as Kafka 0.9 and 0.10 wrote them, by hand from the protocol's guide; the
// sums are those of zlib.
func TestMessagesAreReadAsTheGuideLaysThemOut(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want record
	}{
		"magic 0": {
			"0000000000000007" + "00000011" + "61505427" + "00" + "00" + "00000001" + "6b" + "00000002" + "7631",
			record{offset: 7, time: -1, key: []byte("k"), value: []byte("v1")},
		},
		"magic 1": {
			"0000000000000008" + "00000018" + "757dd16e" + "01" + "00" + "0000015d3ef79800" + "ffffffff" + "00000002" + "7632",
			record{offset: 8, time: 1_500_000_000_000, value: []byte("v2")},
		},
		"magic 1, LogAppendTime": {
			"0000000000000009" + "00000017" + "66eac41a" + "01" + "08" + "0000015d3ef79800" + "00000001" + "6b" + "ffffffff",
			record{offset: 9, time: 1_500_000_000_000, key: []byte("k")},
		},
	} {
		in, err := hex.DecodeString(c.in)
		if err != nil {
			t.Fatal(err)
		}
		got, next, err := read(t, in, 0)
		if err != nil || next != c.want.offset+1 {
			t.Fatalf("%s: next is %d: %v", name, next, err)
		}
		same(t, got, []record{c.want})
	}
}

// kafkas are message sets that Kafka's own code wrote, by magic, codec and type of time.
func kafkas(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "messagesets.txt"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, digits := line[:strings.LastIndexByte(line, ' ')], line[strings.LastIndexByte(line, ' ')+1:]
		if all[name], err = hex.DecodeString(strings.TrimSpace(digits)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return all
}

func TestWhatKafkaItselfWroteInTheOldFormatsIsRead(t *testing.T) {
	all := kafkas(t)
	for magic := range byte(2) {
		for _, codec := range oldCodecs {
			for _, timed := range []string{"CreateTime", "LogAppendTime"}[:magic+1] {
				name := fmt.Sprintf("%d %s %s", magic, codecNames[codec], timed)
				want := []record{
					{offset: 40, time: 1_500_000_000_000, key: []byte("k0"), value: []byte("value 0")},
					{offset: 41, time: 1_500_000_000_001, value: []byte("value 1")},
					{offset: 46, time: 1_500_000_000_002, key: []byte("k2")},
				}
				for i := range want {
					if timed == "LogAppendTime" {
						want[i].time = 1_500_000_009_999
					}
					if magic == 0 {
						want[i].time = -1
					}
				}
				got, next, err := read(t, all[name], 0)
				if err != nil || next != 47 {
					t.Fatalf("%s: next is %d: %v", name, next, err)
				}
				same(t, got, want)
			}
		}
	}
	head := all["0 lz4 CreateTime"][minMessage:]
	if right, broken := byte(xxh32(head[4:6])>>8), byte(xxh32(head[:6])>>8); head[6] == right || head[6] != broken {
		t.Fatalf("the sum in the head of magic 0's lz4 is %02x: the right one is %02x, and Kafka's broken one %02x", head[6], right, broken)
	}
}
