-- record.lua reads and writes the record of a window's seals. It is no script: others include it.
--
-- final has a record for every window that was ever sealed, by its name in the listing: JSON with sorted
-- keys.
--   at         of which instant the seal is, Unix µs
--   passed     [[from, to], …]: events passed the window by that the ledger counts. They are those that the
--              ledger of the instant to has, and that of the instant from hasn't: from is a seal, and to the
--              end of that. Of the instant 0 there is no ledger: nobody knows which events they are
--   reopened   if the seal was taken back, until when nothing seals the window by itself, Unix ms
--   revision   of the seal, from 1
--   why        the seal, or that of the revision before, was taken back
-- By @ and an instant final also has the ledger of that.

local function readRecord(text) -- nil for what is no record
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
