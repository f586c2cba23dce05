package ledger

// A Beat is the sign of life of an instance that shares a store with others.
type Beat struct {
	ID          string `json:"-"` // unique to this life of the instance
	N           uint64 `json:"n"` // number of the beat
	Address     string `json:"address,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"` // of its certificate
	Draining    bool   `json:"draining,omitempty"`    // it takes no homes any more
}

// A Claim says which instance has a caller's home. The zero Claim is that of a free home.
type Claim struct {
	ID    string // of the instance; "": the home is free
	Epoch int64  // of the home: each taking has a greater one
}
