package redisconn

// How old what a replica holds is. A replica can't know: its clock says nothing of its data, and a
// link that has just brought something may be an hour behind. But a replica applies the very stream
// of bytes that its master has written, and both count them. So whoever asks the master now and then
// how many there are has moments to compare with:
//
//	master:  12:00:00 -> 4,100    12:00:01 -> 4,450    12:00:02 -> 4,450
//	replica: 4,300, so it has all that was written until 12:00:00, and maybe more
//
// The age is since that moment, by this process's clock, before the master was asked: an upper
// bound, whatever the clocks of the servers show.

import (
	"fmt"
	"sort"
	"strconv"
	"time"
)

// Replication is how far a server has come in a stream of writes.
type Replication struct {
	Replica bool
	Stream  string // the name of the stream: its master has given it (master_replid)
	Offset  int64  // bytes of it that are applied
}

// ParseReplication reads the texts of INFO's role, master_replid and offset. Of what a server leaves
// out the text is empty.
func ParseReplication(role, stream, offset string) (Replication, error) {
	p := Replication{Replica: role != "master", Stream: stream}
	n, err := strconv.ParseInt(offset, 10, 64)
	if role == "" || stream == "" || err != nil {
		return p, fmt.Errorf("Redis doesn't report how far it has come by INFO replication: role %q, master_replid %q, offset %q", role, stream, offset)
	}
	p.Offset = n
	return p, nil
}

// replicationOf is that by the fields of INFO replication.
func replicationOf(fields map[string]string) (Replication, error) {
	offset := fields["master_repl_offset"]
	if fields["role"] != "master" {
		offset = fields["slave_repl_offset"]
	}
	return ParseReplication(fields["role"], fields["master_replid"], offset)
}

// AsOf is as of when something is true that was read.
type AsOf struct {
	Replica bool          // else a master was read, and it is true as of its own clock
	At      time.Time     // by the master's clock
	Age     time.Duration // since then
}

// UndatedError says that a server was read of which nobody can say how old its data is.
type UndatedError struct{ Replication }

func (e *UndatedError) Error() string {
	role := "a master"
	if e.Replica {
		role = "a replica"
	}
	return fmt.Sprintf("%s was read whose data can't be dated, as no master that was seen has written its stream %.8s… up to byte %d: "+
		"a failover is under way, or its master hasn't been reached since this process began", role, e.Stream, e.Offset)
}

// moment is how much a master had written.
type moment struct {
	offset int64
	at     time.Time // by the master's clock
	asked  time.Time // by this process's, before the master was asked
}

// mostMoments is how many of a stream are kept: all of the last minutes, and ever fewer of what
// was before.
const mostMoments = 1024

// moments are those of one stream, in order.
type moments []moment

// unset is the offset that a server reports, or the next lower one, which has no master and never
// had one.
const unset = 1

func (all *moments) add(m moment) {
	n := len(*all)
	switch {
	case n > 0 && m.offset == (*all)[n-1].offset:
		(*all)[n-1] = m
		return
	case n > 0 && m.offset < (*all)[n-1].offset:
		*all = nil // another stream by the same name
	case n >= mostMoments:
		kept := (*all)[:0]
		for i, m := range *all {
			if i%2 == 0 || i > n/2 {
				kept = append(kept, m)
			}
		}
		*all = kept
	}
	*all = append(*all, m)
}

// before is the latest moment all of which is in a stream up to an offset; false for none.
func (all *moments) before(offset int64) (moment, bool) {
	i := sort.Search(len(*all), func(i int) bool { return (*all)[i].offset > offset })
	if i == 0 || offset <= unset {
		return moment{}, false
	}
	return (*all)[i-1], true
}
