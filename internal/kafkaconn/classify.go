package kafkaconn

import (
	"errors"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ledger"
)

// Classify says what an error of Kafka asks for. What isn't a broker's answer (a
// timeout, a closed connection) may pass; a refusal, and rights that are missing, don't.
// kafka-go's Temporary leaves out codes that do pass, so the table is our own; what isn't
// in it nobody foresaw: halt, and show it.
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

// Codes that kafka-go has no name for.
const (
	errOffsetMovedToTieredStorage kafka.Error = 109
	errRebootstrapRequired        kafka.Error = 129
)

var verdicts = map[kafka.Error]ledger.Verdict{
	kafka.Unknown:                      ledger.Retry, // -1: the broker had an error of its own
	kafka.OffsetOutOfRange:             ledger.Retry, // the log was cut: the start table decides
	kafka.InvalidMessage:               ledger.Retry, // 2: damaged on the way; written again
	kafka.UnknownTopicOrPartition:      ledger.Retry, // not there yet, or not known to this broker yet
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
	kafka.OffsetNotAvailable:           ledger.Retry, // a new leader doesn't know its high watermark yet
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
	kafka.UnstableOffsetCommit:         ledger.Retry, // of a transaction that isn't ours
	kafka.UnknownTopicID:               ledger.Retry, // deleted, or made again: metadata will tell
	kafka.InconsistentTopicID:          ledger.Retry,
	errOffsetMovedToTieredStorage:      ledger.Retry, // a follower's answer: the leader has it
	errRebootstrapRequired:             ledger.Retry,

	kafka.MessageSizeTooLarge: ledger.DeadLetter,
	kafka.RecordListTooLarge:  ledger.DeadLetter,

	// Of a dead-letter topic: our clock is off, or it is compacted. Neither is the letter's
	// fault.
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
