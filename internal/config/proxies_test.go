package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestAProxyIsANetworkThatIsWhatItSeems(t *testing.T) {
	for _, c := range []struct{ list, says string }{
		{"[10.0.0.0/8, '2001:db8:1::/64', 192.0.2.7, '::1']", ""},
		{"[nginx]", `has "nginx", which must be an address, or a network such as 10.0.12.0/24`},
		{"[10.0.0.0/33]", "or a network"},
		{"[10.0.0.1/24]", "the network is 10.0.0.0/24"},
		{"[10.0.0.1, 0.0.0.0/0]", "covers all addresses"},
		{"['::/0']", "covers all addresses"},
		{"['fe80::1%eth0']", "or a network"},
		{"['::ffff:10.0.0.0/104']", "write it as IPv4"},
		{"[10.0.0.1, 10.0.0.1]", "twice"},
	} {
		found := problems(t, "api: {trusted_proxies: "+c.list+"}")
		switch p := found["api.trusted_proxies"]; {
		case c.says == "" && len(found) > 0, c.says != "" && (len(found) != 1 || p == nil || !strings.Contains(p.Error(), c.says)):
			t.Errorf("%s: %v", c.list, found)
		}
	}
}

func TestAnAddressIsANetworkOfOne(t *testing.T) {
	of := API{TrustedProxies: []string{"10.0.0.0/8", "192.0.2.7", "::1"}}
	if got := fmt.Sprint(of.Proxies()); got != "[10.0.0.0/8 192.0.2.7/32 ::1/128]" {
		t.Error(got)
	}
}
