package codec_test

import (
	"fmt"
	"time"

	"github.com/standings/standings/internal/codec"
)

func Example() {
	weekly, err := codec.New(codec.Readable, 180*time.Hour, 99_999_999)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(weekly)

	start := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC).UnixMilli()
	end := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC).UnixMilli()
	reached := time.Date(2026, 11, 21, 8, 15, 30, 123e6, time.UTC).UnixMilli()
	score, err := weekly.Encode(25, weekly.Ticks(start, end, reached))
	fmt.Println(score, err)

	points, ticks, err := weekly.Decode(score)
	at := time.UnixMilli(weekly.Time(start, end, ticks)).UTC()
	fmt.Println(points, at.Format(time.RFC3339Nano), err)

	// Output:
	// readable: k 26, tick 10ms, points within ±99999999
	// 25.213190719485283 <nil>
	// 25 2026-11-21T08:15:30.12Z <nil>
}

func ExampleNew_refused() {
	_, err := codec.New(codec.Readable, 8796*time.Hour, 1e16)
	fmt.Println(err)
	// Output:
	// layout readable: points within ±10000000000000000: out of range: ±1 to ±4503599627370495 fits, and up to ±268435455 keeps the tick of a 8796h0m0s window within a second
}

// A board of stages; of equal stages, fewer revives rank first.
func ExampleTupleLayout() {
	fields, err := codec.NewFields(codec.Field{Name: "stage", Max: 999}, codec.Field{Name: "revives", Max: 99, Fewest: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	weekly, err := codec.NewTupleLayout(codec.Readable, 180*time.Hour, fields)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(weekly)

	score, err := weekly.Encode(codec.Tuple{42, 3}, 1<<29)
	fmt.Println(score, err)
	tuple, ticks, err := weekly.Decode(score)
	fmt.Println(tuple[:fields.Len()], ticks, err)

	// Output:
	// readable: k 30, tick 1ms, stage 0 to 999; revives 0 to 99, fewest first; packed 0 to 99999
	// 4296.5 <nil>
	// [42 3] 536870912 <nil>
}
