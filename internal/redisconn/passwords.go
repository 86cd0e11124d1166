package redisconn

// Redis quotes the arguments of a command that it doesn't know: where AUTH is renamed, the
// answer to it holds the password.

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// hiddenReplyError is an answer of Redis's without the passwords that were in it. It doesn't
// unwrap to the one with them.
type hiddenReplyError string

func (r hiddenReplyError) Error() string { return string(r) }

// RedisError says that this is an answer.
func (hiddenReplyError) RedisError() {}

// withoutPasswords is an error without the arguments that an answer has quoted, and without
// passwords that it holds elsewhere; any other is as it was. What is quoted is cut off at
// 128 bytes, so a longer password couldn't be recognized by its text.
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
	return errors.New(text) // of Sentinels: go-redis flattens what each has answered
}

// hidesPasswords is a client's redis.Hook.
type hidesPasswords struct{ settings *Settings }

// DialHook hides what a Sentinel quotes, which reaches the process that dials alone.
func (h hidesPasswords) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		return conn, h.settings.withoutPasswords(err)
	}
}

// ProcessHook hides it in the error of a call.
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

// ProcessPipelineHook hides it in the errors of a pipeline's calls.
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
