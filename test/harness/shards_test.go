package harness

import "testing"

// The slots are answers of CLUSTER KEYSLOT of Redis 7.0; the tags follow from them.
func TestTagsLieInTheirShares(t *testing.T) {
	for text, want := range map[string]int{"123456789": 12739, "foo": 12182, "bar": 5061} {
		if got := slot(text); got != want {
			t.Errorf("the slot of %q is %d, want %d", text, got, want)
		}
	}
	for _, c := range []struct {
		shard, shards int
		want          string
	}{{0, 5, "0.1"}, {1, 5, "1.3"}, {2, 5, "2.10"}, {3, 5, "3.2"}, {4, 5, "4.3"}} {
		if got := tag(c.shard, c.shards); got != c.want {
			t.Errorf("the tag of shard %d of %d is %s, want %s", c.shard, c.shards, got, c.want)
		}
	}
}

func TestThePositionFurthestBehind(t *testing.T) {
	all := []map[string]string{
		{"a/0": "7", "a/1": "9", "a/2": "5", "a/3": "5"},
		{"a/0": "6", "a/1": "9..12@00000000000000ff", "a/2": "torn:9", "a/3": "5"},
	}
	got := together("ledger", all)
	for field, want := range map[string]string{"a/0": "6", "a/1": "9..12@00000000000000ff", "a/2": "torn:9", "a/3": "5"} {
		if got[field] != want {
			t.Errorf("%s stands at %q, want %q", field, got[field], want)
		}
	}
	if got := together("ledger", []map[string]string{{"a/0": "7"}, {}}); got["a/0"] != "" {
		t.Errorf("a shard without the partition: %q", got)
	}
	if got := together("windows", []map[string]string{{"x": "1"}, {"y": "2"}}); len(got) != 2 {
		t.Errorf("the windows of two shards: %q", got)
	}
}
