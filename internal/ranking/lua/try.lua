-- try.lua runs commands of the scripts on scratch keys, so that a missing right is found here and not in the middle
-- of a piece or a swap.
--
-- KEYS  1 a hash   2 a sorted set   3 another sorted set   4 a text; the script removes them, or they expire in a
--       minute
-- ARGV  1… the commands; those that create the keys come first
--
-- Returns {ok}.

local call, hash, set, other, text = redis.call, KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local minute = string.format('%.0f', call('TIME')[1] * 1000 + 60000)
local used = {
  TIME = function() call('TIME') end,
  HSET = function() call('HSET', hash, 'f', 'v') end,
  SET = function() call('SET', text, 'v', 'PX', 60000) end,
  ZADD = function() call('ZADD', set, 1, 'm') end,
  PEXPIREAT = function()
    for _, key in ipairs(KEYS) do call('PEXPIREAT', key, minute) end
  end,
  EXISTS = function() call('EXISTS', text) end,
  GET = function() call('GET', text) end,
  HDEL = function() call('HDEL', hash, 'g') end,
  HGET = function() call('HGET', hash, 'f') end,
  HGETALL = function() call('HGETALL', hash) end,
  HLEN = function() call('HLEN', hash) end,
  HMGET = function() call('HMGET', hash, 'f') end,
  HSCAN = function() call('HSCAN', hash, 0) end,
  PERSIST = function() call('PERSIST', text) end,
  PTTL = function() call('PTTL', set) end,
  RENAME = function() call('RENAME', set, other) end,
  UNLINK = function() call('UNLINK', text) end,
  ZCARD = function() call('ZCARD', set) end,
  ZMSCORE = function() call('ZMSCORE', set, 'm') end,
  ZREM = function() call('ZREM', set, 'n') end,
  ZREVRANGE = function() call('ZREVRANGE', set, 0, 0, 'WITHSCORES') end,
  ZREVRANK = function() call('ZREVRANK', set, 'm') end,
  ZSCAN = function() call('ZSCAN', set, 0) end,
  ZSCORE = function() call('ZSCORE', set, 'm') end,
}
for _, command in ipairs(ARGV) do used[command]() end

-- A time in the past removes a key, and needs no other right.
for _, key in ipairs(KEYS) do call('PEXPIREAT', key, 1) end
return {'ok'}
