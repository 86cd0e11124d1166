package redisconn

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAReplicaIsAsOldAsTheLatestMomentAllOfWhichItHas(t *testing.T) {
	began := time.Now()
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	var all moments
	_, ok := all.before(500)
	require.False(t, ok, "nobody has asked the master")
	for second, offset := range []int64{4100, 4450, 4450, 4450, 5000} {
		all.add(moment{offset, at(second), at(second)})
	}
	for offset, second := range map[int64]int{4100: 0, 4449: 0, 4450: 3, 4999: 3, 5000: 4, 9999: 4} {
		m, ok := all.before(offset)
		require.True(t, ok)
		require.Equal(t, at(second), m.at, "up to %d", offset)
	}
	_, ok = all.before(4099)
	require.False(t, ok, "it may lack what was written before anybody looked")
}

func TestAReplicaWithoutAMasterHasNoAge(t *testing.T) {
	var all moments
	all.add(moment{offset: 0, at: time.Now()}) // a master without a replica counts nothing
	for _, offset := range []int64{0, 1} {
		_, ok := all.before(offset)
		require.False(t, ok, "what it reports is no place in the stream")
	}
}

func TestAStreamThatGoesBackIsAnotherOne(t *testing.T) {
	var all moments
	all.add(moment{offset: 500, at: time.Now()})
	all.add(moment{offset: 100, at: time.Now()})
	_, ok := all.before(99)
	require.False(t, ok)
	m, ok := all.before(600)
	require.True(t, ok)
	require.EqualValues(t, 100, m.offset)
}

// What is forgotten makes a replica seem older, and never younger.
func TestMomentsOfALongTimeTakeLittleAndAreNeverTooYoung(t *testing.T) {
	began := time.Now()
	var all moments
	const seconds = 100_000
	for second := range seconds {
		all.add(moment{int64(2 + 10*second), began.Add(time.Duration(second) * time.Second), began})
	}
	require.LessOrEqual(t, len(all), mostMoments)
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		second := random.IntN(seconds)
		m, ok := all.before(int64(2 + 10*second))
		require.True(t, ok)
		written := m.at.Sub(began)
		require.LessOrEqual(t, written, time.Duration(second)*time.Second)
	}
	for second := seconds - 300; second < seconds; second++ { // of the last minutes all are kept
		m, _ := all.before(int64(2 + 10*second))
		require.Equal(t, time.Duration(second)*time.Second, m.at.Sub(began))
	}
}

func TestWhatAServerReportsOfItsStreamIsReadFromInfo(t *testing.T) {
	p, err := replicationOf(infoFields("# Replication\r\nrole:slave\r\nslave_read_repl_offset:90\r\nslave_repl_offset:77\r\nmaster_replid:cce1\r\nmaster_replid2:0000\r\nmaster_repl_offset:80\r\n"))
	require.NoError(t, err)
	require.Equal(t, Replication{Replica: true, Stream: "cce1", Offset: 77}, p, "what it has applied, not what it has read")
	p, err = replicationOf(infoFields("role:master\r\nmaster_replid:cce1\r\nmaster_repl_offset:80\r\n"))
	require.NoError(t, err)
	require.Equal(t, Replication{Stream: "cce1", Offset: 80}, p)
	_, err = replicationOf(infoFields("role:slave\r\n"))
	require.ErrorContains(t, err, "doesn't report how far it has come")
}

func TestANodeIsDialledWhereItCanBeReached(t *testing.T) {
	for _, c := range [][3]string{
		{"10.0.0.1:7000", "10.0.0.2:7001", "10.0.0.2:7001"},
		{"10.0.0.1:7000", ":7001", "10.0.0.1:7001"},
		{"10.0.0.1:7000", "127.0.0.1:7001", "10.0.0.1:7001"},
		{"127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7001"},
		{"localhost:7000", "127.0.0.1:7001", "127.0.0.1:7001"},
		{"10.0.0.1:7000", "10.0.0.2:0", "10.0.0.2:7000"},
	} {
		require.Equal(t, c[2], seenFrom(c[0], c[1]))
	}
}
