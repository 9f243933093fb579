package condorworker

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// PortsVariable is the environment variable by which sites of the grid tell programs at which ports others may connect
// to them, as LOW,HIGH.
const PortsVariable = "GLOBUS_TCP_PORT_RANGE"

// SitePorts returns the lowest and the highest port that the site lets others reach; zero: any. With an error, which
// says what the site should have written, the ports are zero too: a pilot goes on without them.
func SitePorts() ([2]uint16, error) { return parsePorts(os.Getenv(PortsVariable)) }

func parsePorts(text string) (ports [2]uint16, err error) {
	if text == "" {
		return ports, nil
	}
	low, high, _ := strings.Cut(text, ",")
	for i, s := range []string{low, high} {
		n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16)
		if err != nil || n < 1024 {
			return [2]uint16{}, unreadablePorts(text)
		}
		ports[i] = uint16(n)
	}
	if ports[0] > ports[1] {
		return [2]uint16{}, unreadablePorts(text)
	}
	return ports, nil
}

func unreadablePorts(text string) error {
	return fmt.Errorf("%s=%.40q is not used: want LOW,HIGH from 1024 on", PortsVariable, text)
}
