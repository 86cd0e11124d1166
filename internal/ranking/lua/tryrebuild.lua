-- tryrebuild.lua uses every command of a rebuild on scratch keys: a right that is missing
-- is found here, and not after hours, in the middle of the swap.
--
-- KEYS  1 a hash   2 a sorted set   3 a text   4 another sorted set; gone at its end, or
--       after a minute
--
-- Returns {ok}.

local call, hash, set, text, other = redis.call, KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local minute = string.format('%.0f', call('TIME')[1] * 1000 + 60000)

call('HSET', hash, 'f', 'v')
call('PEXPIREAT', hash, minute)
call('HGET', hash, 'f')
call('HLEN', hash)
call('HGETALL', hash)
call('HSCAN', hash, 0)
call('HMGET', hash, 'f')
call('HDEL', hash, 'g')

call('SET', text, 'v', 'PX', 60000)
call('GET', text)
call('EXISTS', text)
call('PTTL', text)

call('ZADD', set, 1, 'm')
call('PEXPIREAT', set, minute)
call('ZMSCORE', set, 'm')
call('ZSCORE', set, 'm')
call('ZCARD', set)
call('ZSCAN', set, 0)
call('ZREM', set, 'n')
call('RENAME', set, other)

for i = 1, 4 do call('UNLINK', KEYS[i]) end
return {'ok'}
