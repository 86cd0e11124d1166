-- replication.lua says how far a server has come in the stream of writes by which replicas follow
-- their master. It is no script: others are built with it, by a line that includes it.
--
--   replication() returns {role, name of the stream, bytes of it that are applied}, '' of what isn't
--     reported

local function replication()
  local info = call('INFO', 'replication')
  local role = string.match(info, 'role:(%a+)') or ''
  local bytes = role == 'master' and 'master_repl_offset:(%d+)' or 'slave_repl_offset:(%d+)'
  return {role, string.match(info, 'master_replid:(%x+)') or '', string.match(info, bytes) or ''}
end
