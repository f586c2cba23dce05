package redis

import (
	"testing"
	"time"

	"switchboard/sessions/sessionstest"
)

// TestAbout: the answer of a Redis about itself is parsed.
func TestAbout(t *testing.T) {
	const good = "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\naof_enabled:1\r\naof_last_write_status:ok\r\n" +
		"rdb_last_bgsave_status:ok\r\n# Replication\r\nrole:master\r\nconnected_slaves:2\r\n"
	for info, want := range map[string]About{
		good: {Journal: true, Replicas: 2},
		good + "slave0:ip=10.0.0.6,port=6379,state=online,offset=7,lag=1\r\nslave1:ip=fd00::7,port=6379,state=online,offset=7,lag=9\r\n" +
			"slave2:ip=10.0.0.8,port=6379,state=wait_bgsave,offset=0,lag=9\r\nslave_read_only:1\r\n": {
			Journal: true, Replicas: 2, Silent: "[fd00::7]:6379 for 9s"},
		"aof_enabled:0\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\nrole:master\r\n":        {},
		"aof_enabled:1\r\naof_last_write_status:err\r\nmaxmemory:0\r\n":                          {Journal: true, Failing: true},
		"aof_enabled:0\r\nrdb_last_bgsave_status:err\r\nmaxmemory:0\r\n":                         {Failing: true},
		"aof_enabled:1\r\nmaxmemory:1000\r\nmaxmemory_policy:volatile-ttl\r\nrole:slave\r\n":     {Journal: true, Evicts: true, Replica: true},
		"aof_enabled:1\r\nmaxmemory:1000\r\nrole:master\r\n":                                     {Journal: true}, // missing
		"aof_enabled:1\r\nmaxmemory:1000\r\nmaxmemory_policy:noeviction\r\nconnected_slaves:x\n": {Journal: true},
	} {
		if got := aboutOf(info); got != want {
			t.Errorf("%q: %+v, want %+v", info, got, want)
		}
	}
}

// TestLookAtSetup asks a real Redis, whose clock is that of this machine.
func TestLookAtSetup(t *testing.T) {
	r := sessionstest.StartRedis(t)
	seen, err := Look(t.Context(), Config{URL: r.URL})
	if a := seen.About; err != nil || seen.Untold != nil || a.Journal || a.Failing || a.Evicts || a.Replica || a.Replicas != 0 || a.Ahead.Abs() > time.Minute {
		t.Fatalf("%+v %v", seen, err)
	}
	r.Do("CONFIG SET appendonly yes")
	r.Do("CONFIG SET maxmemory 100mb")
	r.Do("CONFIG SET maxmemory-policy allkeys-lru")
	if seen, err := Look(t.Context(), Config{URL: r.URL}); err != nil || !seen.About.Journal || !seen.About.Evicts {
		t.Errorf("%+v %v", seen, err)
	}
}
