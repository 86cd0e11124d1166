package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"
)

var deadLetterFaults = []fault{
	{kind: "Kafka: the dead-letter topic deleted", group: ofKafka, do: deleteDeadLetterTopic},
}

// deleteDeadLetterTopic deletes the dead-letter topic, and for a while every topic that consumers create in
// its place. The dead letters are kept for the check at the end.
func deleteDeadLetterTopic(w *world, r *rand.Rand) (func() string, error) {
	had := len(w.place.DeadLetters(w.t))
	away := between(r, 0, 4*time.Second)
	deleted := w.place.DeleteDeadLetters(w.t, away)
	if deleted == 0 {
		return nothing, nil
	}
	w.producers.burst() // its bad events require a topic
	begun, after := time.Now(), time.Duration(0)
	for ; time.Since(begun) < 15*time.Second; time.Sleep(20 * time.Millisecond) {
		if w.place.HasDeadLetterTopic(w.t) {
			after = time.Since(begun)
			break
		}
	}
	return func() string {
		if !w.place.HasDeadLetterTopic(w.t) {
			return ""
		}
		text := fmt.Sprintf("%d letters gone, deleted %d times in %.1f s", had, deleted, away.Seconds())
		if after > 0 {
			text += fmt.Sprintf(", made again after %.1f s", after.Seconds())
		}
		return text
	}, nil
}
