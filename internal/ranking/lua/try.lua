-- try.lua uses every command of the scripts on scratch keys: a right that is
-- missing is found here, and not in the middle of a piece.
--
-- KEYS  1 a hash   2 a sorted set   3 a text; gone at its end, or after a minute
--
-- Returns {ok}.

local call, hash, set, text = redis.call, KEYS[1], KEYS[2], KEYS[3]
local minute = string.format('%.0f', call('TIME')[1] * 1000 + 60000)

call('HSET', hash, 'f', 'v')
call('PEXPIREAT', hash, minute)
call('HGET', hash, 'f')
call('HLEN', hash)
call('HGETALL', hash)
call('HSCAN', hash, 0)
call('HMGET', hash, 'f')
call('HDEL', hash, 'g')

call('SET', text, 'v')
call('PEXPIREAT', text, minute)
call('GET', text)
call('EXISTS', text)

call('ZADD', set, 1, 'm')
call('PEXPIREAT', set, minute)
call('ZMSCORE', set, 'm')
call('ZSCORE', set, 'm')
call('ZCARD', set)
call('ZREVRANK', set, 'm')
call('ZREVRANGE', set, 0, 0, 'WITHSCORES')
call('ZSCAN', set, 0)
call('ZREM', set, 'n')
call('PTTL', set)

-- A time that is over removes a key, and needs no other right.
for _, key in ipairs(KEYS) do
  call('PEXPIREAT', key, 1)
end
return {'ok'}
