package config

// The proxies whose statement about the client's address is trusted.

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

const networkRule = "networks such as 10.0.12.0/24, or addresses, …"

// Proxies returns the networks of api.trusted_proxies. An address is a network of one.
func (c *API) Proxies() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range c.TrustedProxies {
		if network, err := parseNetwork(text); err == nil { // validated before
			all = append(all, network)
		}
	}
	return all
}

func checkNetwork(text string) error {
	_, err := parseNetwork(text)
	return err
}

// parseNetwork parses a network or an address. It refuses misleading forms, and a network of all addresses,
// because a client in a trusted network can claim any address.
func parseNetwork(text string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(text)
	if !strings.Contains(text, "/") {
		var at netip.Addr
		if at, err = netip.ParseAddr(text); err == nil && at.Zone() != "" {
			err = errors.New("has a zone")
		}
		if err == nil {
			network = netip.PrefixFrom(at, at.BitLen())
		}
	}
	switch {
	case err != nil:
		return network, errors.New("must be an address, or a network such as 10.0.12.0/24 or 2001:db8:1::/64")
	case network.Addr().Is4In6():
		return network, errors.New("is an IPv4 network in IPv6 notation: write it as IPv4")
	case network.Bits() == 0:
		return network, errors.New("covers all addresses: any client could name another address")
	case network.Masked() != network:
		return network, fmt.Errorf("has host bits set: the network is %s", network.Masked())
	}
	return network, nil
}
