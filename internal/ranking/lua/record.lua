-- record.lua reads and writes the record of a window's seals. Other scripts include it; it isn't a script by itself.
--
-- final maps the name in the listing of every window that was ever sealed to its record, JSON with sorted keys:
--   at         instant of the seal, Unix µs
--   passed     [[from, to], …]: events that the ledger counts and the window lacks. They are the events that the ledger
--              of the instant to counts and that of the instant from doesn't. from is a seal, to its removal. If from
--              is 0, there is no ledger, and the events are unknown
--   reopened   if the window was reopened: until when no job seals it by itself, Unix ms
--   revision   of the seal, from 1
--   why        the reason for reopening this revision, or the one before
-- A field @<instant> of final is the ledger of that instant.

local function readRecord(text) -- nil if the text isn't a valid record
  local ok, r = pcall(cjson.decode, text or '')
  if not ok or type(r) ~= 'table' or not r.revision then return nil end
  r.passed = r.passed or {}
  return r
end

local function recordText(r)
  local passed = {}
  for i, p in ipairs(r.passed) do passed[i] = string.format('[%.0f,%.0f]', p[1], p[2]) end
  return string.format('{"at":%.0f', r.at or 0)
    .. (#passed > 0 and ',"passed":[' .. table.concat(passed, ',') .. ']' or '')
    .. (r.reopened and string.format(',"reopened":%.0f', r.reopened) or '')
    .. string.format(',"revision":%d', r.revision)
    .. (r.why and r.why ~= '' and ',"why":' .. cjson.encode(r.why) or '') .. '}'
end
