package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/standings/standings/internal/ledger"
)

// deliberate lists the codes whose verdict differs from Kafka's "retriable".
var deliberate = map[int16]ledger.Verdict{
	-1:  ledger.Retry,      // the broker's log has the cause; it may be transient
	1:   ledger.Retry,      // OFFSET_OUT_OF_RANGE: the start table decides
	10:  ledger.DeadLetter, // MESSAGE_TOO_LARGE
	18:  ledger.DeadLetter, // RECORD_LIST_TOO_LARGE
	11:  ledger.Retry,      // STALE_CONTROLLER_EPOCH
	22:  ledger.Retry,      // ILLEGAL_GENERATION: join again
	25:  ledger.Retry,      // UNKNOWN_MEMBER_ID
	27:  ledger.Retry,      // REBALANCE_IN_PROGRESS
	51:  ledger.Retry,      // CONCURRENT_TRANSACTIONS
	60:  ledger.Retry,      // REASSIGNMENT_IN_PROGRESS
	79:  ledger.Retry,      // MEMBER_ID_REQUIRED
	109: ledger.Retry,      // OFFSET_MOVED_TO_TIERED_STORAGE
	129: ledger.Retry,      // REBOOTSTRAP_REQUIRED

	// Share groups and controllers: no request of this program gets these codes.
	84:  ledger.Halt, // ELECTION_NOT_NEEDED
	122: ledger.Halt, 123: ledger.Halt, 133: ledger.Halt,
}

func TestEveryCodeOfKafkaHasTheVerdictThatItsProtocolSuggests(t *testing.T) {
	known := 0
	for code := int16(-1); code < 200; code++ {
		err := kerr.ErrorForCode(code)
		if code != 0 && code != -1 && errors.Is(err, kerr.UnknownServerError) || err == nil {
			continue // no such code
		}
		known++
		want := ledger.Halt
		if kerr.IsRetriable(err) {
			want = ledger.Retry
		}
		if v, ok := deliberate[code]; ok {
			want = v
		}
		if got := Classify(kafka.Error(code)); got != want {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
	require.Greater(t, known, 120)
}

func TestAnErrorMeansTheSameHoweverItIsWrapped(t *testing.T) {
	for code, v := range verdicts {
		require.Equal(t, v, Classify(fmt.Errorf("doing: %w", errors.Join(code, io.EOF))))
		require.Equal(t, v, Classify(fmt.Errorf("doing: %w", code)))
	}
}

func TestWhatIsNoAnswerOfABrokerMayPass(t *testing.T) {
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, errors.New("dial tcp: connection refused"), kafka.ErrGroupClosed} {
		require.Equal(t, ledger.Retry, Classify(err))
		require.Equal(t, ledger.Retry, Classify(err).AtStart())
	}
	require.Equal(t, ledger.Halt, Classify(kafka.Error(9999)), "what nobody foresaw is shown")
}

func TestAtTheStartAHaltIsARefusal(t *testing.T) {
	require.Equal(t, ledger.Refuse, Classify(fmt.Errorf("x: %w", kafka.TopicAuthorizationFailed)).AtStart())
	require.Equal(t, ledger.Refuse, Classify(kafka.SASLAuthenticationFailed).AtStart())
	require.Equal(t, ledger.Retry, Classify(kafka.LeaderNotAvailable).AtStart())
	require.Equal(t, ledger.Refuse, Classify(fmt.Errorf("x: %w", &Refusal{Err: io.EOF})))
	require.Equal(t, ledger.Refuse, Classify(&RightsError{}))
}
