-- bounds.lua is where the scores of a tuple, or of points, are (codec's TupleLayout.Bounds): of
-- all their ticks. It is no script: others are built with it, by a line that includes it.
--
-- bits is how many of a double are ticks where the layout is wide, and 0 where it is readable.
-- Returns the least score, and the first one above all of them.
local function bounds(bits, score)
  score = score + 0 -- not tonumber: see layouts.lua
  if bits == 0 then
    local low = score - score % 1 -- rounds down, also below zero
    return low, low + 1
  end
  local fraction, exponent = math.frexp(score)
  local step = 2 ^ (bits - 53) -- what one more of a tuple adds to the fraction
  local low = fraction - fraction % step
  return math.ldexp(low, exponent), math.ldexp(low + step, exponent)
end
