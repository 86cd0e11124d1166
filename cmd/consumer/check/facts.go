package check

// This file holds what the checks judge: the answers of Kafka and Redis, and the requirements of the
// configuration.

import (
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/standings/standings/cmd/consumer/shards"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// kafkaFacts holds Kafka's answers. A query that failed has an error instead, already in one line that an
// operator can read.
type kafkaFacts struct {
	bootstrap []reached // the configured addresses
	err       error     // from the metadata request: then nothing else is known
	cluster   string
	brokers   []brokerFacts
	topics    []topicFacts
	bans      *topicFacts // the bans topic; nil if none is configured
	final     *finalFacts // the topics for final windows; nil if they are not published
	group     groupFacts
	missing   []kafkaconn.Right // rights that the brokers report as missing
	rightsErr error
}

// finalFacts holds the facts about the topics for final windows.
type finalFacts struct {
	topic, published topicFacts
	// unused: no transaction has ever been used on this cluster.
	unused bool
}

// reached is an address, with the error if it cannot be reached.
type reached struct {
	address string
	err     error
}

// brokerFacts describes a broker as the cluster advertises it to clients.
type brokerFacts struct {
	id int
	reached
	offered     map[protocol.ApiKey]versions
	sessions    kafkaconn.Sessions // the session timeouts that it accepts
	sessionsErr error
}

// versions is the range of versions that a broker supports for one API.
type versions struct{ from, to int16 }

// groupFacts holds the coordinator's answers about the group.
type groupFacts struct {
	kafkaconn.Group
	err    error
	unused bool // no group has ever been used on this cluster
}

// topicFacts holds Kafka's answers about a topic.
type topicFacts struct {
	name        string
	err         error // the topic does not exist, or this user may not see it
	partitions  []kafka.Partition
	settings    kafkaconn.TopicSettings
	settingsErr error

	// Only for a topic that consumers read:
	logs         []kafkaconn.Log
	logsErr      error
	committed    map[int]kafkaconn.Commit
	committedErr error
	outlook      []locate.Outlook // where its partitions would start
	outlookErr   error
	deadLetters  *topicFacts
}

// redisFacts holds Redis's answers.
type redisFacts struct {
	kind    string // a single server, a cluster, the Sentinels' master
	db      int64
	err     error         // no server can be reached: then nothing else is known
	servers []serverFacts // the masters
	rights  error         // from trying all commands of the scripts
	// state is the content of all shards; noState is the error of the first shard that cannot be read.
	state   *ledger.State
	noState error
	// Per shard: its content, and its report. problems has the reasons why shards cannot be read, by master.
	states   []ledger.State
	shards   []shards.Report
	problems []string
	// Only for a cluster: the slots that it does not serve.
	cluster bool
	number  string // how the configured number of shards differs from Redis
	gaps    []string
	gapsErr error
	// difference is how the configured schema differs from the one in Redis; nil if they are equal. added
	// are the periods that a start would add.
	difference error
	added      []ledger.Added
	group      string   // the configured group
	lost       []string // windows that are listed but whose keys are gone
	lostErr    error    // from looking for lost windows
	// others are windows that were written under another rule than their boards have now.
	others    []*ranking.RuleError
	othersErr error // from looking for such windows
}

// serverFacts describes one master by its own answers.
type serverFacts struct {
	address  string // empty if there is only one master: the configuration names it
	err      error
	info     map[string]string // INFO; empty if this user may not run it
	settings map[string]string // CONFIG GET; empty if this user may not run it
	eviction error             // the result of the same check as at start and on every new connection
	ahead    time.Duration     // how far its clock is ahead of this machine's
	within   time.Duration     // the precision of ahead: half a round trip
}

// wanted holds the configuration's requirements for topics.
type wanted struct {
	rules        fold.Rules
	largestBatch int64 // the largest record batch that fits into fold_memory, in bytes
	group        string
	session      time.Duration
	start        string
	notRedis     error // why the ledger is unknown
}
