package responses

import (
	"os"
	"testing"

	"switchboard/servers/responses/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}
