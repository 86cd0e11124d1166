package kafkaconn

import (
	"errors"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ledger"
)

// Classify returns the verdict on an error of Kafka. An error that is not a broker's answer (a timeout, a
// closed connection) is transient; a *Refusal and a *RightsError are permanent. The table is our own, since
// kafka-go's Temporary omits some transient codes. A code that is not in the table is unexpected: halt, and
// report it.
func Classify(err error) ledger.Verdict {
	if errors.As(err, new(*Refusal)) || errors.As(err, new(*RightsError)) {
		return ledger.Refuse
	}
	code, ok := errors.AsType[kafka.Error](err)
	if !ok {
		return ledger.Retry
	}
	if v, ok := verdicts[code]; ok {
		return v
	}
	return ledger.Halt
}

// Codes for which kafka-go has no name.
const (
	errOffsetMovedToTieredStorage kafka.Error = 109
	errRebootstrapRequired        kafka.Error = 129
)

var verdicts = map[kafka.Error]ledger.Verdict{
	kafka.Unknown:                      ledger.Retry, // -1: an internal error of the broker
	kafka.OffsetOutOfRange:             ledger.Retry, // the log was truncated: the start table decides
	kafka.InvalidMessage:               ledger.Retry, // 2: damaged in transit; it is sent again
	kafka.UnknownTopicOrPartition:      ledger.Retry, // it does not exist yet, or this broker does not know it yet
	kafka.LeaderNotAvailable:           ledger.Retry,
	kafka.NotLeaderForPartition:        ledger.Retry,
	kafka.RequestTimedOut:              ledger.Retry,
	kafka.BrokerNotAvailable:           ledger.Retry,
	kafka.ReplicaNotAvailable:          ledger.Retry,
	kafka.NetworkException:             ledger.Retry,
	kafka.GroupLoadInProgress:          ledger.Retry,
	kafka.GroupCoordinatorNotAvailable: ledger.Retry,
	kafka.NotCoordinatorForGroup:       ledger.Retry,
	kafka.NotEnoughReplicas:            ledger.Retry,
	kafka.NotEnoughReplicasAfterAppend: ledger.Retry,
	kafka.RebalanceInProgress:          ledger.Retry,
	kafka.IllegalGeneration:            ledger.Retry, // the generation is over: join again
	kafka.UnknownMemberId:              ledger.Retry,
	kafka.MemberIDRequired:             ledger.Retry,
	kafka.KafkaStorageError:            ledger.Retry,
	kafka.NotController:                ledger.Retry,
	kafka.FencedLeaderEpoch:            ledger.Retry,
	kafka.UnknownLeaderEpoch:           ledger.Retry,
	kafka.OffsetNotAvailable:           ledger.Retry, // a new leader does not know its high watermark yet
	kafka.ListenerNotFound:             ledger.Retry,
	kafka.ThrottlingQuotaExceeded:      ledger.Retry,
	kafka.StaleControllerEpoch:         ledger.Retry,
	kafka.FetchSessionIDNotFound:       ledger.Retry,
	kafka.InvalidFetchSessionEpoch:     ledger.Retry,
	kafka.FetchSessionTopicIDError:     ledger.Retry,
	kafka.PreferredLeaderNotAvailable:  ledger.Retry,
	kafka.EligibleLeadersNotAvailable:  ledger.Retry,
	kafka.ReassignmentInProgress:       ledger.Retry,
	kafka.ConcurrentTransactions:       ledger.Retry,
	kafka.UnstableOffsetCommit:         ledger.Retry, // of another program's transaction
	kafka.UnknownTopicID:               ledger.Retry, // the topic was deleted or recreated
	kafka.InconsistentTopicID:          ledger.Retry,
	errOffsetMovedToTieredStorage:      ledger.Retry, // a follower's answer: the leader has the data
	errRebootstrapRequired:             ledger.Retry,

	kafka.MessageSizeTooLarge: ledger.DeadLetter,
	kafka.RecordListTooLarge:  ledger.DeadLetter,

	// From a dead-letter topic: our clock is wrong, or the topic is compacted. The dead letter is not the
	// cause.
	kafka.InvalidRecord:    ledger.Halt,
	kafka.InvalidTimestamp: ledger.Halt,

	kafka.InvalidTopic:                       ledger.Halt,
	kafka.TopicAuthorizationFailed:           ledger.Halt,
	kafka.GroupAuthorizationFailed:           ledger.Halt,
	kafka.ClusterAuthorizationFailed:         ledger.Halt,
	kafka.TransactionalIDAuthorizationFailed: ledger.Halt,
	kafka.SASLAuthenticationFailed:           ledger.Halt,
	kafka.UnsupportedSASLMechanism:           ledger.Halt,
	kafka.IllegalSASLState:                   ledger.Halt,
	kafka.UnsupportedVersion:                 ledger.Halt,
	kafka.SecurityDisabled:                   ledger.Halt,
	kafka.PolicyViolation:                    ledger.Halt,
	kafka.InvalidConfiguration:               ledger.Halt,
}
