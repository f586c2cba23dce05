package handoff

import "time"

// Passed returns how long it is from one reading of the clock to a later one, at least. The monotonic clock stands
// still while a machine is suspended, and the clock on the wall may be set back: the one that shows more counts.
func Passed(from, to time.Time) time.Duration { return to.Sub(from) + max(0, Skipped(from, to)) }

// Skipped returns how much more went by on the wall than on the monotonic clock: the machine was suspended, or somebody
// set its clock.
func Skipped(from, to time.Time) time.Duration { return to.Round(0).Sub(from.Round(0)) - to.Sub(from) }
