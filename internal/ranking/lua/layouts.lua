-- layouts.lua adds points to scores, by each of the two layouts of package codec. It is no
-- script: others are built with it, by a line that includes it.
--
-- A layout is a function (w, old, points, times, from, to, ids, refuse):
--   w        the window: first and last ms, and of its layout k, tick ms, max points
--   old      the scores of the members from…to as Redis has them, false for none
--   points   by member, what is added
--   times    by member, when, ms
--   ids      the argument before the first member's id
--   refuse   is called for who would leave the range of points: (reason, id)
-- It returns what ZADD takes: {score, id, …}, or nil and whose score none of the layout's is.
--
-- Numbers are whole and below 2^53, so exact; x % 1 is what lies above the next
-- lower whole number, also below zero, and far cheaper than math.floor.
--
-- A score is read by adding 0 to its text: tonumber of gopher-lua, which miniredis runs, reads a
-- text without a point by ParseInt, so it takes neither a whole number beyond 64 bits, as wide
-- scores may be, nor 1e+22. Its math.huge is the largest double, so 1 / 0 is what is infinite.

local frexp, ldexp = math.frexp, math.ldexp
local P52, P53, INFINITE = 2 ^ 52, 2 ^ 53, 1 / 0

-- readable: points + ticks / 2^k.
local function readable(w, old, points, times, from, to, ids, refuse)
  local first, last, tick, max, scale = w.first, w.last, w.tick, w.max, 2 ^ w.k
  local out, n = {}, 1
  for i = from, to do
    local at, p, id = times[i], points[i], ARGV[ids + i]
    if at < first then at = first end
    local ticks = (last - at) / tick
    ticks = ticks - ticks % 1
    local score = old[n]
    if score then
      score = score + 0
      if score * scale % 1 ~= 0 then return nil, id end
      local part = score % 1
      local had, whole = part * scale, score - part
      if whole > max or whole < -max then return nil, id end
      p = p + whole
      if had < ticks then ticks = had end
    end
    if p > max or p < -max then refuse('overflow', id) end
    out[2 * n - 1] = p + ticks / scale
    out[2 * n] = id
    n = n + 1
  end
  return out
end

-- wide: points and ticks as the bits of a double, see codec.
local function wide(w, old, points, times, from, to, ids, refuse)
  local first, last, tick, max = w.first, w.last, w.tick, w.max
  local scale, high = 2 ^ w.k, 2 ^ (52 - w.k)
  local out, n = {}, 1
  for i = from, to do
    local at, p, id = times[i], points[i], ARGV[ids + i]
    if at < first then at = first end
    local ticks = (last - at) / tick
    ticks = ticks - ticks % 1
    local score, biased = old[n], max
    if score then
      score = score + 0
      if score < 2 ^ -1022 or score == INFINITE then return nil, id end
      local fraction, exponent = frexp(score)
      local low = fraction * P53 - P52 -- of 52 bits: of the points, then k of ticks
      local had = low % scale
      biased = (exponent + 1021) * high + (low - had) / scale
      if biased > 2 * max then return nil, id end
      if had < ticks then ticks = had end
    end
    p = p + biased
    if p < 0 or p > 2 * max then
      refuse('overflow', id)
    else
      local low = p % high
      out[2 * n - 1] = ldexp(P52 + low * scale + ticks, (p - low) / high - 1074)
      out[2 * n] = id
    end
    n = n + 1
  end
  return out
end
