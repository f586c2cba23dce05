package codex

import (
	"testing"
	"testing/synctest"

	"switchboard/handoff"
)

func TestCheckVersion(t *testing.T) {
	for version, want := range map[string]string{
		"0.140.0": "bigpc runs codex 0.140; 0.150 is needed.", "0.149.1": "bigpc runs codex 0.149; 0.150 is needed.",
		"0.9.0":         "bigpc runs codex 0.9; 0.150 is needed.",
		"0.140-alpha.3": "bigpc runs codex 0.140; 0.150 is needed.", "v0.140.0": "bigpc runs codex 0.140; 0.150 is needed.",
		"0.149+build.2": "bigpc runs codex 0.149; 0.150 is needed.",
		"0.150-alpha.3": "", "0.150": "", "1": "", "v1.0": "", "0.x": "", "0.150.0": "", "0.150.0-alpha.3": "", "0.169.0": "",
		"1.0.0": "", "1.2": "", "0.0.0": "", "0.0.0-dev": "", "": "", "devel": "", "0": "",
	} {
		said := ""
		if err := checkVersion("bigpc", version); err != nil {
			said = handoff.AsError(err).Spoken()
		}
		if said != want {
			t.Errorf("%q: %q, want %q", version, said, want)
		}
	}
}

// TestOutdatedServer: an old server can be initialized, but is disconnected at once.
func TestOutdatedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, wire := pipeFake(t)
		dialled := callErr(func() error {
			_, err := connect(t.Context(), withDefaults(Config{}), wire)
			return err
		})
		f.reply(f.expect("initialize"), `{"userAgent":"switchboard/0.140.0 (Debian 12.0.0; x86_64) unknown"}`)
		f.expect("initialized")
		dialled.wantCode(t, handoff.CodeOutdated)
		f.quiet()
	})
}
