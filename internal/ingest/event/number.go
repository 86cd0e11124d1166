package event

// Numbers by value: 25, 25.0, 2.5e1 and 2500e-2 are the same integer. The decimal text is evaluated directly,
// so nothing is rounded, and one pass over the text bounds the work: 1e999999999 is recognised as too large
// without writing it out.

type fault int

const (
	none fault = iota
	fractional
	outOfRange
)

// integer returns the value of a JSON number (RFC 8259, section 6), which must be an integer within ±limit.
func integer(number []byte, limit int64) (int64, fault) {
	digits, negative := number, false
	if digits[0] == '-' {
		digits, negative = digits[1:], true
	}
	// Almost every number has a few digits and nothing else.
	if len(digits) <= 18 {
		n := int64(0)
		for i, c := range digits {
			if c < '0' || c > '9' {
				break
			}
			n = n*10 + int64(c-'0')
			if i == len(digits)-1 {
				return within(uint64(n), negative, limit)
			}
		}
	}
	return decimal(digits, negative, limit)
}

func within(magnitude uint64, negative bool, limit int64) (int64, fault) {
	if limit < 0 || magnitude > uint64(limit) {
		return 0, outOfRange
	}
	if negative {
		return -int64(magnitude), none
	}
	return int64(magnitude), none
}

// decimal reads digits, fraction and exponent. It keeps the significant digits, from the first to the last that
// is not zero, and their power of ten.
func decimal(text []byte, negative bool, limit int64) (int64, fault) {
	var (
		magnitude   uint64 // of the first 19 significant digits
		significant int    // digits from the first to the last that is not zero
		zeros       int    // zeros since the last significant digit
		fraction    int    // digits after the point
		point       bool
	)
	i := 0
	for ; i < len(text) && text[i] != 'e' && text[i] != 'E'; i++ {
		c := text[i]
		if c == '.' {
			point = true
			continue
		}
		if point {
			fraction++
		}
		if c == '0' {
			if significant > 0 {
				zeros++
			}
			continue
		}
		significant += zeros + 1
		if significant <= 19 { // 19 nines are below 2^64
			for ; zeros > 0; zeros-- {
				magnitude *= 10
			}
			magnitude = magnitude*10 + uint64(c-'0')
		}
		zeros = 0
	}
	if significant == 0 {
		return 0, none
	}
	power := exponent(text[i:]) - int64(fraction) + int64(zeros)
	switch {
	case power < 0:
		return 0, fractional
	case int64(significant)+power > 19:
		return 0, outOfRange
	}
	for ; power > 0; power-- {
		magnitude *= 10
	}
	return within(magnitude, negative, limit)
}

// exponent reads e, a sign and digits, or an empty text. It stops at a trillion: no text is long enough for its
// digits to compensate for that.
func exponent(text []byte) int64 {
	if len(text) == 0 {
		return 0
	}
	text = text[1:]
	negative := text[0] == '-'
	if negative || text[0] == '+' {
		text = text[1:]
	}
	const enough = int64(1e12)
	n := int64(0)
	for _, c := range text {
		if n < enough {
			n = n*10 + int64(c-'0')
		}
	}
	if negative {
		return -n
	}
	return n
}
