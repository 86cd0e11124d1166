package check

// What is judged: what Kafka and Redis say, and what the configuration asks of them.

import (
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/standings/standings/cmd/consumer/shards"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// kafkaFacts is what Kafka says. What couldn't be queried has its error instead, each
// one line for a person.
type kafkaFacts struct {
	bootstrap []reached // the configured addresses
	err       error     // of the request for metadata: then nothing else is known
	cluster   string
	brokers   []brokerFacts
	topics    []topicFacts
	bans      *topicFacts // where who is banned is kept; nil where nobody can be
	final     *finalFacts // where final windows are published; nil where they aren't
	group     groupFacts
	missing   []kafkaconn.Right // that brokers tell to be missing
	rightsErr error
}

// finalFacts are of the topics for final windows.
type finalFacts struct {
	topic, published topicFacts
	// unused: nobody has ever used a transaction on this cluster.
	unused bool
}

// reached is an address, and why it can't be reached.
type reached struct {
	address string
	err     error
}

// brokerFacts is a broker as the cluster names it to its clients.
type brokerFacts struct {
	id int
	reached
	offered     map[protocol.ApiKey]versions
	sessions    kafkaconn.Sessions // that it takes
	sessionsErr error
}

// versions of a call, from lowest to highest.
type versions struct{ from, to int16 }

// groupFacts is what its coordinator says of the group.
type groupFacts struct {
	kafkaconn.Group
	err    error
	unused bool // no group was ever used on this cluster
}

// topicFacts is what Kafka says of a topic.
type topicFacts struct {
	name        string
	err         error // it isn't there, or may not be seen
	partitions  []kafka.Partition
	settings    kafkaconn.TopicSettings
	settingsErr error

	// Of a topic to read:
	logs         []kafkaconn.Log
	logsErr      error
	committed    map[int]kafkaconn.Commit
	committedErr error
	outlook      []ingest.Outlook // where its partitions would start
	outlookErr   error
	deadLetters  *topicFacts
}

// redisFacts is what Redis says.
type redisFacts struct {
	kind    string // a single server, a cluster, the Sentinels' master
	db      int64
	err     error         // of reaching any: then nothing else is known
	servers []serverFacts // the masters
	rights  error         // of trying all that the scripts use
	// state is what all shards hold, and noState why the first of those that can't be read can't.
	state   *ledger.State
	noState error
	// Of each shard: what it holds; problems has why shards can't be read, by their masters.
	states   []ledger.State
	shards   []shards.Report
	problems []string
	// Of a cluster: what it doesn't serve.
	cluster bool
	number  string // what the configuration says of their number that isn't so any more
	gaps    []string
	gapsErr error
	// difference is what the configuration's schema has other than Redis; nil for none. added are
	// the periods that a start would add.
	difference error
	added      []ledger.Added
	group      string   // of the configuration
	lost       []string // windows that are listed, and whose keys are gone
	lostErr    error    // of looking for them
	// others are windows that were written by another rule than their boards have.
	others    []*ranking.RuleError
	othersErr error // of looking for them
}

// serverFacts is what a master says of itself.
type serverFacts struct {
	address  string // empty where there is only one, and the configuration names it
	err      error
	info     map[string]string // INFO; empty where this user may not ask
	settings map[string]string // CONFIG GET; empty where this user may not ask
	eviction error             // as it is judged at start and with every new connection
	ahead    time.Duration     // its clock, of this machine's
	within   time.Duration     // how exactly that is known: half a round trip
}

// wanted is what the configuration asks of topics.
type wanted struct {
	rules        fold.Rules
	largestBatch int64 // bytes of a record batch that fold_memory has room for
	group        string
	session      time.Duration
	start        string
	notRedis     error // why nothing is known of the ledger
}
