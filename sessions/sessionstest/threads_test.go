package sessionstest

import (
	"testing"

	"switchboard/handoff/threads"
)

func TestMemoryThreads(t *testing.T) {
	TestThreads(t, func(*testing.T) threads.Store { return threads.NewMemory() })
}
