-- tryreshard.lua uses every command of a reshard on scratch keys: a right that is missing is
-- found here, and not once ingestion is held.
--
-- KEYS  1 a hash   2 a sorted set   3 a text; gone at its end, or after a minute
--
-- Returns {ok}.

local call, hash, set, text = redis.call, KEYS[1], KEYS[2], KEYS[3]
local minute = string.format('%.0f', call('TIME')[1] * 1000 + 60000)

call('SET', text, 'v', 'PX', 60000)
call('PERSIST', text)
call('PEXPIREAT', text, minute)
call('GET', text)
call('EXISTS', text)
call('PTTL', text)

call('HSET', hash, 'f', 'v')
call('PEXPIREAT', hash, minute)
call('HLEN', hash)
call('HGETALL', hash)
call('HSCAN', hash, 0)

call('ZADD', set, 1, 'm')
call('PEXPIREAT', set, minute)
call('ZCARD', set)
call('ZREVRANGE', set, 0, 0, 'WITHSCORES')

for i = 1, 3 do call('UNLINK', KEYS[i]) end
return {'ok'}
