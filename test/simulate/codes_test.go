package simulate

import "testing"

// A broker can report an error for single partitions or for the whole request. A client that takes
// such a response for a successful one loses events.
func TestEveryErrorCodeThatBrokersAnswerPasses(t *testing.T) {
	for call, codes := range kafkaCodes {
		for i := range codes {
			for _, whole := range []int{0, 128} {
				p := small()
				p.sendings[1].records[3].value = []byte("{") // a dead letter
				p.events = []fault{{kind: refused, on: call, n: i<<8 | whole}}
				if w := holds(t, p); w.counts[errorCode+": "+call] != 1 {
					t.Errorf("%s was answered with an error code %d times", call, w.counts[errorCode+": "+call])
				}
			}
		}
	}
}
