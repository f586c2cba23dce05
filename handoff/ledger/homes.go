package ledger

// A Beat is what an instance says of itself where several share a store.
type Beat struct {
	ID          string `json:"-"` // of the life of the instance; no other has it
	N           uint64 `json:"n"` // how often it has said so
	Address     string `json:"address,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"` // of its certificate
	Draining    bool   `json:"draining,omitempty"`    // it takes no homes any more
}

// A Claim is which instance has a caller's home, as the store says. The zero Claim is nobody's.
type Claim struct {
	ID    string // of the instance; "": the home is free
	Epoch int64  // of the home: each taking has a greater one
}
