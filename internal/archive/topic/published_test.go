package topic

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/testenv"
)

func TestWhatIsPublishedIsTheLastRecordOfEachKeyThatWasCommitted(t *testing.T) {
	f := newFixture(t, testenv.Kafka(t), 1, "", 1)
	f.Fill(10)
	f.MakeFinal()
	require.NoError(t, f.publisher().Pass(t.Context()))
	f.published(1)
	client := f.client()
	name := f.topic + PublishedSuffix
	is, _, err := readPublished(t.Context(), client, name)
	require.NoError(t, err)
	require.Len(t, is, 1)
	was := is[f.Listed()+":1"]
	require.EqualValues(t, 10, was.members)
	require.Equal(t, parse(t, f.published(1).trailer).Checksum, was.checksum.String())

	put := func(key, value string) {
		t.Helper()
		r := &kgo.Record{Topic: name, Key: []byte(key), Value: []byte(value)}
		if value == "" {
			r.Value = nil
		}
		require.NoError(t, f.kafka.Client(t).ProduceSync(t.Context(), r).FirstErr())
	}
	line := `{"board":"eu","period":"weekly","window":"2026-W40","revision":2,"sealed_at":"2026-11-21T08:15:30.123Z","members":3,"checksum":"00000000000000ff"}`
	put("eu:weekly:2026-W40:2", line)
	is, _, err = readPublished(t.Context(), client, name)
	require.NoError(t, err)
	require.Len(t, is, 2)
	for _, bad := range []string{"{", "{}", strings.Replace(line, `"revision":2`, `"revision":3`, 1), strings.Replace(line, "ff", "xx", 1), strings.Replace(line, "08:15", "99:15", 1), strings.Replace(line, ":3", ":-3", 1)} {
		put("eu:weekly:2026-W40:2", bad)
		_, _, err = readPublished(t.Context(), client, name)
		require.ErrorIs(t, err, errNotALine, bad)
		require.ErrorContains(t, err, "write a tombstone for it")
		require.ErrorIs(t, f.publisher().Pass(t.Context()), errNotALine, "nothing is published that could be there already")
	}
	put("eu:weekly:2026-W40:2", "")
	is, _, err = readPublished(t.Context(), client, name)
	require.NoError(t, err)
	require.Equal(t, map[string]published{f.Listed() + ":1": was}, is)

	// Records of an aborted transaction are not visible.
	aborted, err := f.producer(kgo.TransactionalID(f.topic + ".other"))
	require.NoError(t, err)
	defer aborted.Close()
	require.NoError(t, aborted.BeginTransaction())
	require.NoError(t, aborted.ProduceSync(t.Context(), &kgo.Record{Topic: name, Key: []byte("eu:weekly:2026-W40:2"), Value: []byte(line)}).FirstErr())
	require.NoError(t, aborted.EndTransaction(t.Context(), kgo.TryAbort))
	is, _, err = readPublished(t.Context(), client, name)
	require.NoError(t, err)
	require.Len(t, is, 1)
}

func TestTopicsAreMadeCompactedAndThoseThatWouldForgetAreRefused(t *testing.T) {
	k := testenv.Kafka(t)
	source := k.Topic(t, 3, nil)
	f := &fixture{t: t, kafka: k, topic: source + ".final"}
	made, err := Ensure(t.Context(), f.client(), f.topic, source)
	require.NoError(t, err)
	require.Equal(t, []string{f.topic, f.topic + PublishedSuffix}, made)
	made, err = Ensure(t.Context(), f.client(), f.topic, source)
	require.NoError(t, err)
	require.Empty(t, made)

	f.topic = source + ".other"
	k.CreateTopic(t, f.topic+PublishedSuffix, 1, map[string]string{"cleanup.policy": "delete"})
	_, err = Ensure(t.Context(), f.client(), f.topic, source)
	require.ErrorContains(t, err, "which forgets which windows are published")
	f.topic = source + ".more"
	k.CreateTopic(t, f.topic+PublishedSuffix, 2, map[string]string{"cleanup.policy": "compact"})
	_, err = Ensure(t.Context(), f.client(), f.topic, source)
	require.ErrorContains(t, err, "has 2 partitions")
}
