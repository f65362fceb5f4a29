package convert

import "time"

// zone is the zone in which the times of the inputs are meant by their type, if that is not UTC.
func (c *conversion) zone() string {
	if c.plan.read.Time < 0 {
		return ""
	}
	name := c.survey.Zone(c.plan.read.Time)
	switch name {
	case "UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Zulu", "Universal", "Local":
		return ""
	}
	if _, err := time.LoadLocation(name); err != nil { // an offset, or a name of some other system
		return ""
	}
	return name
}
