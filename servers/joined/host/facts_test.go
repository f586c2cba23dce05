package host

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBattery(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		capacity, status string
		percent          int
		charging         bool
	}{
		{"83\n", "Discharging\n", 83, false}, {"83\n", "Charging\n", 83, true}, {"100", "Full", 100, true},
		{"full\n", "Full\n", 0, false}, {"101\n", "Full\n", 0, false}, {"-1", "Full", 0, false},
	} {
		dir := filepath.Join(t.TempDir(), "BAT0")
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "capacity"), []byte(row.capacity), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "status"), []byte(row.status), 0o600))
		if percent, charging := battery(filepath.Dir(dir)); percent != row.percent || charging != row.charging {
			t.Errorf("%+v: %d, %v", row, percent, charging)
		}
	}
	if percent, charging := battery(t.TempDir()); percent != 0 || charging {
		t.Errorf("without one: %d, %v", percent, charging)
	}
}
