package recordbatch

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
)

// oldMessage is a message in a format from before Kafka 0.11, in hexadecimal, and the expected error.
type oldMessage struct {
	hex  string
	want OldFormatError
}

func (m oldMessage) bytes() []byte {
	b, err := hex.DecodeString(m.hex)
	if err != nil {
		panic(err)
	}
	return b
}

// oldMessages are bytes as Kafka 0.9 and 0.10 wrote them, composed by hand from the protocol guide, with
// checksums by zlib. Kafka's own code wrote the compressed set.
var oldMessages = map[string]oldMessage{
	"0": {
		"0000000000000007" + "00000011" + "61505427" + "00" + "00" + "00000001" + "6b" + "00000002" + "7631",
		OldFormatError{Magic: 0, Time: -1},
	},
	"1": {
		"0000000000000008" + "00000018" + "757dd16e" + "01" + "00" + "0000015d3ef79800" + "ffffffff" + "00000002" + "7632",
		OldFormatError{Magic: 1, Time: 1_500_000_000_000},
	},
	"1-log-append-time": {
		"0000000000000009" + "00000017" + "66eac41a" + "01" + "08" + "0000015d3ef79800" + "00000001" + "6b" + "ffffffff",
		OldFormatError{Magic: 1, Time: 1_500_000_000_000},
	},
	"1-compressed": {
		"000000000000002e0000006c16f83c3401010000015d3ef79802ffffffff000000561f8b08000000000000ff6360800379e128610b46208331d6eefb" +
			"0c900853b60190642f4bcc294d5530802a03a9909d16372501ae94f13f1020141a4215b201b144f192465eb84226b0994620e50094a1d98778000000",
		OldFormatError{Magic: 1, Time: 1_500_000_000_002},
	},
}

func TestAMessageOfAnOldFormatIsRefusedAsSuch(t *testing.T) {
	for name, m := range oldMessages {
		for _, before := range []int{0, 3} {
			var in []byte
			if before > 0 {
				in = plain(0, before, 0).encode()
			}
			got, next, err := read(t, append(in, m.bytes()...), 0)
			var old *OldFormatError
			if !errors.As(err, &old) || *old != m.want || errors.Is(err, ErrCorrupt) || len(got) != before || next != int64(before) {
				t.Errorf("%s: %d records, next %d: %v", name, len(got), next, err)
			}
		}
	}
}

func TestAnOldMessageThatIsDamagedIsCorrupt(t *testing.T) {
	for name, m := range oldMessages {
		clean := m.bytes()
		for i := 8 * oldCRCAt; i < 8*len(clean); i++ {
			in := bytes.Clone(clean)
			in[i/8] ^= 1 << (i % 8)
			if _, next, err := read(t, in, 0); !errors.Is(err, ErrCorrupt) || next != 0 {
				t.Fatalf("%s, bit %d: next %d: %v", name, i, next, err)
			}
		}
	}
}

func TestAnOldMessageShorterThanAnEmptyOneIsCorrupt(t *testing.T) {
	for length, corrupt := range map[byte]bool{13: true, 14: false} {
		in := seal(append([]byte{0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, length, 0, 0, 0, 0, 1}, make([]byte, length-5)...))
		if _, _, err := read(t, in, 0); err == nil || errors.Is(err, ErrCorrupt) != corrupt {
			t.Errorf("%d: %v", length, err)
		}
	}
}

func TestAnOldMessageThatIsCutOffIsLeftForTheNextFetch(t *testing.T) {
	for name, m := range oldMessages {
		first, old := plain(0, 2, 0).encode(), m.bytes()
		for n := range old {
			if got, next, err := read(t, append(bytes.Clone(first), old[:n]...), 0); err != nil || next != 2 || len(got) != 2 {
				t.Fatalf("%s, cut at %d: %d records, next %d: %v", name, n, len(got), next, err)
			}
			if _, next, err := read(t, old[:n], 3); n > 0 && (!errors.Is(err, ErrTruncated) || next != 3) {
				t.Fatalf("%s, cut at %d, the first: next %d: %v", name, n, next, err)
			}
		}
	}
}
