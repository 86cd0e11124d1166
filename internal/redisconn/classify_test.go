package redisconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

// reply is an error with a server's text.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

var _ redis.Error = reply("")

// The texts are those of Redis 6.2.14, 7.0.15 and Valkey 8.0.1, outside and inside scripts. Equal texts are
// listed once.
func TestEveryReplyOfAServerIsClassified(t *testing.T) {
	const in62 = "ERR Error running script (call to f_60b5b39b0e3af83f7a2973c2d263e9045cc8a835): @user_script:36: "
	const in70 = " script: 60b5b39b0e3af83f7a2973c2d263e9045cc8a835, on @user_script:36."
	for text, want := range map[string]ledger.Verdict{
		"LOADING Redis is loading the dataset in memory":                                                        ledger.Retry,
		"LOADING Valkey is loading the dataset in memory":                                                       ledger.Retry,
		"READONLY You can't write against a read only replica.":                                                 ledger.Retry,
		"READONLY You can't write against a read only replica." + in70:                                          ledger.Retry,
		in62 + "@user_script: 36: -READONLY You can't write against a read only replica.":                       ledger.Retry,
		"OOM command not allowed when used memory > 'maxmemory'.":                                               ledger.Retry,
		"OOM command not allowed when used memory > 'maxmemory'." + in70:                                        ledger.Retry,
		in62 + "@user_script: 36: -OOM command not allowed when used memory > 'maxmemory'.":                     ledger.Retry,
		"NOSCRIPT No matching script. Please use EVAL.":                                                         ledger.Retry,
		"NOSCRIPT No matching script.":                                                                          ledger.Retry,
		"MOVED 866 127.0.0.1:7001":                                                                              ledger.Retry,
		"ASK 866 127.0.0.1:7001":                                                                                ledger.Retry,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                               ledger.Retry,
		"CLUSTERDOWN The cluster is down":                                                                       ledger.Retry,
		"CLUSTERDOWN Hash slot not served":                                                                      ledger.Retry,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                      ledger.Retry,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":                ledger.Retry,
		"BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":               ledger.Retry,
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.":      ledger.Retry,
		in62 + "@user_script: 36: -MISCONF Redis is configured to save RDB snapshots, but":                      ledger.Retry,
		"NOREPLICAS Not enough good replicas to write.":                                                         ledger.Retry,
		"NOREPLICAS Not enough good replicas to write." + in70:                                                  ledger.Retry,
		in62 + "@user_script: 36: -NOREPLICAS Not enough good replicas to write.":                               ledger.Retry,
		"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)":          ledger.Retry,
		"ERR max number of clients reached":                                                                     ledger.Retry,
		in62 + "Script killed by user with SCRIPT KILL...":                                                      ledger.Retry,
		"ERR Script killed by user with SCRIPT KILL..." + in70:                                                  ledger.Retry,
		"NOAUTH Authentication required.":                                                                       ledger.Halt,
		"WRONGPASS invalid username-password pair or user is disabled.":                                         ledger.Halt,
		"NOPERM this user has no permissions to run the 'hset' command or its subcommand":                       ledger.Halt,
		"NOPERM User u has no permissions to run the 'hset' command":                                            ledger.Halt,
		"NOPERM this user has no permissions to access one of the keys used as arguments":                       ledger.Halt,
		in62 + "@user_script: 36: The user executing the script can't run this command or subcommand":           ledger.Halt,
		"ERR The user executing the script can't run this command or subcommand" + in70:                         ledger.Halt,
		"ERR ACL failure in script: User u has no permissions to run the 'hset' command" + in70:                 ledger.Halt,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                     ledger.Halt,
		"WRONGTYPE Operation against a key holding the wrong kind of value" + in70:                              ledger.Halt,
		in62 + "WRONGTYPE Operation against a key holding the wrong kind of value":                              ledger.Halt,
		"ERR unknown command `EVALSHA`, with args beginning with: ":                                             ledger.Halt,
		"CROSSSLOT Keys in request don't hash to the same slot":                                                 ledger.Halt,
		in62 + "@user_script: 36: Write commands not allowed after non deterministic commands.":                 ledger.Halt,
		"BUSYKEY Target key name already exists.":                                                               ledger.Halt,
		"DENIED Redis is running in protected mode because protected mode is enabled":                           ledger.Halt,
		"ERR Error compiling script (new function): user_script:1: '=' expected near 'BUSY' -OOM @user_script:": ledger.Halt,
	} {
		err := fmt.Errorf("apply events/3: %w", reply(text))
		require.Equal(t, want, Classify(err), text)
		require.False(t, Unreachable(err), text)
		atStart := want
		if want == ledger.Halt {
			atStart = ledger.Refuse
		}
		require.Equal(t, atStart, Classify(err).AtStart(), text)
	}
}

func TestNoAnswerMayPass(t *testing.T) {
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, os.ErrDeadlineExceeded,
		&net.OpError{Op: "dial", Err: errors.New("connection refused")}, &net.DNSError{Name: "redis"},
	} {
		require.Equal(t, ledger.Retry, Classify(fmt.Errorf("apply: %w", err)), err)
		require.True(t, Unreachable(fmt.Errorf("apply: %w", err)), err)
	}
	require.Equal(t, ledger.Retry, Classify(context.Canceled))
	require.False(t, Unreachable(context.Canceled), "nobody was asked")
}

func TestWhatAServerIsNotFitForHalts(t *testing.T) {
	for _, err := range []error{&EvictionError{}, &RightsError{Err: reply("NOPERM")}, serverMismatch("is a Sentinel")} {
		require.Equal(t, ledger.Halt, Classify(fmt.Errorf("start: %w", err)))
		require.Equal(t, ledger.Refuse, Classify(fmt.Errorf("start: %w", err)).AtStart())
		require.False(t, Unreachable(err))
	}
}
