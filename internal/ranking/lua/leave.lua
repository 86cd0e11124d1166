-- leave.lua marks a shard whose members have moved to another number of shards: whoever still
-- writes or reads it finds that in place of a schema.
--
-- KEYS  1 schema
-- ARGV  1 the mark
--
-- Returns {left}.

redis.call('SET', KEYS[1], ARGV[1])
return {'left'}
