package pilot

import (
	"fmt"
	"strconv"
	"strings"
)

// portsVariable is how sites of the grid tell programs at which ports others may connect to them, as LOW,HIGH.
const portsVariable = "GLOBUS_TCP_PORT_RANGE"

// parsePorts reads the lowest and the highest port of text; zero: any.
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
	return fmt.Errorf("%s=%.40q is not used: want LOW,HIGH from 1024 on", portsVariable, text)
}
