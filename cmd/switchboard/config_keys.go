package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	machines "switchboard/servers/simulator"
	"switchboard/web"
)

// keySetting is a key, and what its holder may do. What no row sets has the default for its principal.
type keySetting struct {
	Principal    string         `yaml:"principal"`
	KeyFile      string         `yaml:"key_file"`
	KeyEnv       string         `yaml:"key_env"`
	KeySHA256    string         `yaml:"key_sha256"`
	NamesCallers bool           `yaml:"names_callers"`
	Servers      []string       `yaml:"servers"`
	Tools        []string       `yaml:"tools"`
	Approve      approval       `yaml:"approve"`
	Instructions instructing    `yaml:"instructions"`
	Metrics      bool           `yaml:"metrics"`
	Limits       handoff.Limits `yaml:"limits"` // of all callers of the key together
}

// approval is a [handoff.Approval] in a file: none, voice or all. Earlier versions wrote true and false.
type approval handoff.Approval

// UnmarshalText reads the word.
func (a *approval) UnmarshalText(text []byte) error {
	return wordOf(text, (*handoff.Approval)(a), map[string]handoff.Approval{
		"none": handoff.ApproveNone, "voice": handoff.ApproveVoice, "all": handoff.ApproveAll,
		"false": handoff.ApproveNone, "true": handoff.ApproveAll,
	})
}

// instructing is a [handoff.Instructing] in a file: none, added or all. Earlier versions wrote true and false.
type instructing handoff.Instructing

// UnmarshalText reads the word.
func (i *instructing) UnmarshalText(text []byte) error {
	return wordOf(text, (*handoff.Instructing)(i), map[string]handoff.Instructing{
		"none": handoff.InstructNone, "added": handoff.InstructAdded, "all": handoff.InstructAll,
		"false": handoff.InstructNone, "true": handoff.InstructAll,
	})
}

// wordOf stores what a word means.
func wordOf[T any](word []byte, into *T, words map[string]T) error {
	meant, ok := words[string(word)]
	if !ok {
		return errors.New("no such word")
	}
	*into = meant
	return nil
}

// checkKeys checks the keys and fills in s.Access.
func (s *settings) checkKeys(r report) {
	principals := map[[sha256.Size]byte]string{}
	add := func(row string, k web.Key) { // with two entries, it would be open which rights a key has
		if other, taken := principals[k.Sum]; taken {
			r.Bad(row, "is the key of %s, which has an entry already", other)
			return
		}
		principals[k.Sum] = k.Principal
		s.Access = append(s.Access, k)
	}
	if text := r.env(ownerKey); text != "" {
		r.places[ownerKey] = place{name: ownerKey}
		if !keyText.MatchString(text) {
			r.Bad(ownerKey, keyRule)
		}
		own := s.usualKey(ownerName, true)
		own.Sum = sha256.Sum256([]byte(text))
		add(ownerKey, own)
	}
	for i := range s.Keys {
		row, k := elem("keys", i), &s.Keys[i]
		at := r.in(row)
		at.in("limits").fill(&k.Limits, s.Limits)
		k.check(at, s.serverNames())
		if sum, ok := k.sum(at); ok {
			add(row, s.grant(at, *k, sum))
		}
	}
}

// check checks the names in a key.
func (k keySetting) check(r report, servers []string) {
	if !plainName.MatchString(k.Principal) {
		r.Bad("principal", "must be a name of A-Z a-z 0-9 . _ -")
	}
	if !k.Metrics || len(k.Servers) > 0 { // a key for /metrics alone needs no machines or tools
		r.someOf("servers", k.Servers, servers)
	}
	if !k.Metrics || len(k.Tools) > 0 {
		r.someOf("tools", k.Tools, tools.Names())
	}
}

const keyRule = "a key has at least 16 characters of A-Z a-z 0-9 _ -"

// sum returns the SHA-256 of the key, and false if there is a problem.
func (k keySetting) sum(r report) (sum [sha256.Size]byte, ok bool) {
	sources := []string{k.KeyFile, k.KeyEnv, k.KeySHA256}
	if sources = slices.DeleteFunc(sources, func(text string) bool { return text == "" }); len(sources) != 1 {
		r.Bad("", "needs one of key_file, key_env and key_sha256")
		return sum, false
	}
	if k.KeySHA256 != "" {
		digits, err := hex.DecodeString(k.KeySHA256)
		if err != nil || len(digits) != sha256.Size {
			r.Bad("key_sha256", "must be 64 hex digits")
			return sum, false
		}
		return [sha256.Size]byte(digits), true
	}
	read, row := r.secret("key", k.KeyFile, k.KeyEnv)
	text, err := read()
	if err == nil && !keyText.MatchString(text) {
		err = errors.New(keyRule)
	}
	if err != nil {
		r.Bad(row, "%v", err)
		return sum, false
	}
	return sha256.Sum256([]byte(text)), true
}

// grant returns the web key of an entry of the file: what its holder may do. A key with a list of tools is for a
// program; without answer_agent in the list, no yes of the program counts.
func (s *settings) grant(r report, k keySetting, sum [sha256.Size]byte) web.Key {
	key := s.usualKey(k.Principal, k.Principal == ownerName && !k.NamesCallers)
	key.Sum, key.NamesCallers, key.Tools, key.Servers, key.KeyLimits = sum, k.NamesCallers, k.Tools, k.Servers, k.Limits
	switch {
	case r.IsSet("approve"):
		key.Approve = handoff.Approval(k.Approve)
	case k.Tools != nil && !slices.Contains(k.Tools, tools.AnswerAgent):
		key.Approve = handoff.ApproveNone
	case k.Tools != nil:
		key.Approve = handoff.ApproveVoice
	}
	if r.IsSet("instructions") {
		key.Instructions = handoff.Instructing(k.Instructions)
	}
	if r.IsSet("metrics") {
		key.Metrics = k.Metrics
	}
	return key
}

// usualKey returns a key with what its holder may do unless the settings say otherwise: the owner everything, anybody
// else what voice alone allows, on the machines that are for them. It has no sum yet.
func (s *settings) usualKey(principal string, owner bool) web.Key {
	k := web.Key{
		Principal: principal, Barred: s.barred(principal), Approve: handoff.ApproveVoice, Instructions: handoff.InstructAdded,
		Limits: s.Limits, KeyLimits: s.Limits,
	}
	if owner {
		k.Approve, k.Instructions, k.Metrics = handoff.ApproveAll, handoff.InstructAll, true
	}
	return k
}

// serverNames returns the names of the machines in the settings. Without any, it returns those of the simulated
// machines and of a local codex, which are used instead.
func (s *settings) serverNames() []string {
	var names []string
	for _, server := range s.Servers {
		if server.Name != "" && !slices.Contains(names, server.Name) { // other checks report the rest
			names = append(names, server.Name)
		}
	}
	if len(names) > 0 {
		return names
	}
	for _, m := range machines.NewWorld(machines.Config{}).Machines() {
		names = append(names, m.Name)
	}
	return append(names, localName)
}

// barred returns the machines that a principal may not use, because they are for others.
func (s *settings) barred(principal string) (names []string) {
	for _, server := range s.Servers {
		if server.For != nil && !slices.Contains(server.For, principal) {
			names = append(names, server.Name)
		}
	}
	return names
}
