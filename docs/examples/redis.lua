-- Reads a board in Redis, as one script. docs/reading.md describes the formats. Usage:
--
--   redis-cli --eval redis.lua 'lb:{0}:schema' 'lb:{0}:windows' 'lb:{0}:global:weekly:2026-W47' , \
--     weekly global:weekly:2026-W47 10
--
-- KEYS  1 the schema   2 the windows   3 the board
-- ARGV  1 period   2 the window in the listing   3 how many rows
-- Returns {member, points, time in Unix ms, …}. If the board has a rule of its own, points is a list of fields.

-- Returns the fields of a rule in a window's entry.
local function parse_rule(rule)
  local fields = {}
  for name, max, words in rule:gmatch('([%w_]+):(%d+)([%l:]*)') do
    fields[#fields + 1] = {name = name, max = tonumber(max),
      signed = words:find('signed') ~= nil, fewest = words:find('fewest') ~= nil}
  end
  return fields
end

-- Returns a field's radix in a layout of this kind.
local function radix(kind, field)
  if kind == 'wide' then return field.max + 1 end
  local n = 10
  while n <= field.max do n = n * 10 end
  return n
end

-- Returns the layout of a board with these fields. kind is that of its period's layout, and length the period's
-- length in ms.
local function by_rule(kind, fields, length)
  local largest = 0
  for _, field in ipairs(fields) do largest = largest * radix(kind, field) + field.max end
  local l = {layout = kind, k = 1, max = 0}
  local numbers, limit = largest + 1, 2 ^ 53
  if kind == 'wide' then limit = 2 ^ 63 - 2 ^ 53 end
  if kind == 'wide' and fields[1].signed then numbers, l.max = 2 * largest + 1, largest end
  while 2 ^ l.k < length and numbers * 2 ^ (l.k + 1) <= limit do l.k = l.k + 1 end
  l.tick = math.ceil(length / 2 ^ l.k)
  return l
end

-- Returns the fields of a packed number, in order.
local function unpack_fields(kind, fields, packed)
  local values = {}
  for i = #fields, 1, -1 do
    local field, digit = fields[i], packed   -- the first field takes the rest
    if i > 1 then digit = packed % radix(kind, field) end
    packed = (packed - digit) / radix(kind, field)
    if field.fewest then digit = (field.signed and 0 or field.max) - digit end
    values[i] = digit
  end
  return values
end

local listing = redis.call('HGET', KEYS[2], ARGV[2])
if not listing then return {} end
local window = cjson.decode(listing)
local first, last, rule = window.start, window['end'], window.rule
local now = redis.call('TIME')[1] * 1000
if window.expires <= now then return {} end
local l = cjson.decode(redis.call('GET', KEYS[1])).periods[ARGV[1]]
local fields
if rule then
  local lengths = {daily = 129600000, weekly = 648000000, monthly = 2721600000,
    quarterly = 7992000000, yearly = 31665600000, ['all-time'] = 4294967296000}
  local length = lengths[l.of and l.of.calendar or ARGV[1]] or last - first
  fields = parse_rule(rule)
  l = by_rule(l.layout, fields, length)
end
local scale = 2 ^ l.k

local function decode(score)
  if l.layout == 'readable' then
    local points = math.floor(score)
    return points, (score - points) * scale
  end
  local fraction, exponent = math.frexp(score)
  local low = fraction * 2 ^ 53 - 2 ^ 52   -- the lower 52 bits; Lua cannot read a double's bits
  local ticks = low % scale
  return (exponent + 1021) * 2 ^ (52 - l.k) + (low - ticks) / scale - l.max, ticks
end

local rows = {}
local found = redis.call('ZREVRANGE', KEYS[3], 0, ARGV[3] - 1, 'WITHSCORES')
for i = 1, #found, 2 do
  local points, ticks = decode(tonumber(found[i + 1]))
  rows[#rows + 1] = found[i]
  rows[#rows + 1] = fields and unpack_fields(l.layout, fields, points) or points
  rows[#rows + 1] = math.max(first, last - (ticks + 1) * l.tick)
end
return rows
