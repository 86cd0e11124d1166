package redisconn

// Redis quotes the arguments of an unknown command in its reply. If AUTH is renamed, the reply contains the
// password.

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// hiddenReplyError is a reply of Redis with the passwords removed. It does not unwrap to the original.
type hiddenReplyError string

func (r hiddenReplyError) Error() string { return string(r) }

// RedisError marks the error as a reply of the server.
func (hiddenReplyError) RedisError() {}

// withoutPasswords removes the quoted arguments, and passwords elsewhere in the text, from an error. It
// returns other errors unchanged. It drops all quoted arguments, because Redis cuts them off at 128 bytes,
// so that part of a longer password would not be recognized.
func (s *Settings) withoutPasswords(err error) error {
	if err == nil || !strings.Contains(err.Error(), "unknown command") {
		return err
	}
	text, _, _ := strings.Cut(err.Error(), ", with args beginning with")
	for _, secret := range []string{s.Password, s.SentinelPassword} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "(hidden)")
		}
	}
	if text == err.Error() {
		return err
	}
	if _, answered := errors.AsType[redis.Error](err); answered {
		return hiddenReplyError(text)
	}
	return errors.New(text) // through Sentinels: go-redis flattens their replies into text
}

// hidesPasswords is a redis.Hook.
type hidesPasswords struct{ settings *Settings }

// DialHook hides passwords in the replies of Sentinels, which only the dialing call receives.
func (h hidesPasswords) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		return conn, h.settings.withoutPasswords(err)
	}
}

// ProcessHook hides passwords in the error of a call.
func (h hidesPasswords) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil {
			return nil
		}
		if hidden := h.settings.withoutPasswords(err); hidden != err { //nolint:errorlint // the very same
			cmd.SetErr(hidden)
			return hidden
		}
		return err
	}
}

// ProcessPipelineHook hides passwords in the errors of a pipeline's calls.
func (h hidesPasswords) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err == nil {
			return nil
		}
		for _, cmd := range cmds {
			cmd.SetErr(h.settings.withoutPasswords(cmd.Err()))
		}
		return h.settings.withoutPasswords(err)
	}
}
