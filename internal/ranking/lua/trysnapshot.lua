-- trysnapshot.lua uses the commands of a snapshot that a consumer doesn't need otherwise, on scratch
-- keys: a right that is missing is found at start, and not when a snapshot is due.
--
-- KEYS  1 a sorted set; gone at its end, or after a minute
--
-- Returns {ok}.

local call, set = redis.call, KEYS[1]
local minute = string.format('%.0f', call('TIME')[1] * 1000 + 60000)

call('ZADD', set, 1, 'm')
call('PEXPIREAT', set, minute)
call('ZSCAN', set, 0)
call('UNLINK', set)
return {'ok'}
