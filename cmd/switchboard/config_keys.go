package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	machines "switchboard/servers/simulator"
	"switchboard/web"
)

// keySetting is a key, and what its holder may do.
type keySetting struct {
	Principal    string           `yaml:"principal" doc:"who the holder is; sessions are remembered per principal"`
	KeyFile      string           `yaml:"key_file" doc:"file with the key: at least 16 of A-Z a-z 0-9 _ -; or"`
	KeyEnv       string           `yaml:"key_env" doc:"variable with the key; or"`
	KeySHA256    string           `yaml:"key_sha256" doc:"SHA-256 of the key, 64 hex digits"`
	NamesCallers bool             `yaml:"names_callers" unset:"false" doc:"its requests name their end user in OpenAI-Safety-Identifier, and what is remembered is kept apart for each; a call without a name has nothing before it and nothing after it"`
	Servers      []string         `yaml:"servers" unset:"all" doc:"machines that may be used, by name"`
	Tools        []string         `yaml:"tools" unset:"all" doc:"tools that may be used: codex, list_servers, list_sessions, read_session, run_on_server, queue_next, name_session, stop_work, status, answer_agent, set_updates, remain_silent"`
	Approve      approval         `yaml:"approve" unset:"all for owner, else voice; with tools: voice if they include answer_agent, else none" doc:"which yes to what agents ask counts. none: no yes. voice: one said or typed in a call. all: also one by the API and, on a page that logs in with this key, a tap, so give it to nobody but a person. A no counts with any of them, if the key has the tool answer_agent. true is all, false is none"`
	Instructions instructing      `yaml:"instructions" unset:"all for owner, else added" doc:"which calls get instructions of Switchboard. none: no call. added: one that brings its own gets at most 120 words after them. all: also, one that brings none gets the whole of them; on the page it always does. true is all, false is none"`
	Metrics      bool             `yaml:"metrics" unset:"true for owner, else false" doc:"may read /metrics, the numbers of all callers together"`
	Limits       keyLimitSettings `yaml:"limits"`
}

// approval is a [handoff.Approval] in a file: none, voice or all. Earlier versions wrote true and false.
type approval struct{ handoff.Approval }

// UnmarshalText reads the word.
func (a *approval) UnmarshalText(text []byte) error {
	words := map[string]handoff.Approval{
		"none": handoff.ApproveNone, "voice": handoff.ApproveVoice, "all": handoff.ApproveAll, "false": handoff.ApproveNone,
		"true": handoff.ApproveAll,
	}
	var ok bool
	if a.Approval, ok = words[string(text)]; !ok {
		return errors.New("no such approval")
	}
	return nil
}

// instructing is a [handoff.Instructing] in a file: none, added or all. Earlier versions wrote true and false.
type instructing struct{ handoff.Instructing }

// UnmarshalText reads the word.
func (i *instructing) UnmarshalText(text []byte) error {
	words := map[string]handoff.Instructing{
		"none": handoff.InstructNone, "added": handoff.InstructAdded, "all": handoff.InstructAll,
		"false": handoff.InstructNone, "true": handoff.InstructAll,
	}
	var ok bool
	if i.Instructing, ok = words[string(text)]; !ok {
		return errors.New("no such word")
	}
	return nil
}

// limitSettings limit each caller.
type limitSettings struct {
	Calls             int `yaml:"calls" doc:"calls that each caller, and each key, may have open at a time; 0: any number"`
	MinutesPerDay     int `yaml:"minutes_per_day" doc:"minutes that each may spend in calls in a day of UTC; work goes on after them; 0: any number"`
	HandoffsPerMinute int `yaml:"handoffs_per_minute" doc:"how often each may give work in a minute; 0: any number"`

	DollarsPerDay  float64 `yaml:"dollars_per_day" unset:"any amount" doc:"dollars (US) that the voice model may cost each in a day of UTC; the call in which they are used up says so and ends; needs model.prices where the model is not OpenAI's"`
	DollarsPerCall float64 `yaml:"dollars_per_call" unset:"any amount" doc:"the same for one call"`
}

// keyLimitSettings limit all callers of a key together. The fields are those of [limitSettings].
type keyLimitSettings struct {
	Calls             int `yaml:"calls" unset:"as limits.calls" doc:"calls that all callers of this key may have open at a time"`
	MinutesPerDay     int `yaml:"minutes_per_day" unset:"as limits.minutes_per_day" doc:"minutes that they may spend in calls in a day, together"`
	HandoffsPerMinute int `yaml:"handoffs_per_minute" unset:"as limits.handoffs_per_minute" doc:"how often they may give work in a minute, together"`

	DollarsPerDay  float64 `yaml:"dollars_per_day" unset:"as limits.dollars_per_day" doc:"dollars that their calls may cost in a day, together"`
	DollarsPerCall float64 `yaml:"dollars_per_call" unset:"as limits.dollars_per_call" doc:"dollars that one of their calls may cost"`
}

func (l limitSettings) limits() handoff.Limits { return handoff.Limits(l) }

// isSet reports whether the file, a flag or the environment sets a path.
func (c *checker) isSet(path string) bool {
	_, set := c.places[path]
	return set
}

// keys checks the keys and fills in s.Access.
func (c *checker) keys() {
	owners := map[[sha256.Size]byte]string{}
	add := func(path string, k web.Key) {
		if other, taken := owners[k.Sum]; taken && other != k.Principal {
			c.bad(path, "the key of %s is also the key of %s", k.Principal, other)
			return
		}
		owners[k.Sum] = k.Principal
		c.s.Access = append(c.s.Access, k)
	}
	if text := c.env(ownerKey); text != "" {
		c.places[ownerKey] = place{name: ownerKey}
		if !keyText.MatchString(text) {
			c.bad(ownerKey, "%s", keyRule)
		}
		add(ownerKey, c.s.ownersKey(text))
	}
	for i, k := range c.s.Keys {
		path := elem("keys", i)
		if !plainName.MatchString(k.Principal) {
			c.bad(path+".principal", "must be a name of A-Z a-z 0-9 . _ -")
		}
		c.mayUse(path, k)
		if key, ok := c.key(path, k); ok {
			c.terms(path, k, &key)
			add(path, key)
		}
	}
}

// ownersKey returns a key of the owner with this text and everything allowed.
func (s *settings) ownersKey(text string) web.Key {
	k := web.NewKey(ownerName, text)
	k.Barred = s.barred(ownerName)
	k.Approve, k.Instructions, k.Metrics = handoff.ApproveAll, handoff.InstructAll, true
	k.Limits, k.KeyLimits = s.Limits.limits(), s.Limits.limits()
	return k
}

// terms sets what the holder of a key may do.
func (c *checker) terms(path string, from keySetting, k *web.Key) {
	owner := from.Principal == ownerName && !from.NamesCallers
	k.NamesCallers, k.Tools, k.Servers, k.Barred = from.NamesCallers, from.Tools, from.Servers, c.s.barred(from.Principal)
	k.Approve = usualApproval(from.Principal, from.NamesCallers, from.Tools)
	if c.isSet(path + ".approve") {
		k.Approve = from.Approve.Approval
	}
	k.Instructions = from.Instructions.Instructing
	if !c.isSet(path + ".instructions") {
		k.Instructions = usualInstructions(owner)
	}
	k.Metrics = from.Metrics || owner && !c.isSet(path+".metrics")
	k.Limits, k.KeyLimits = c.s.Limits.limits(), limitSettings(from.Limits).limits()
	own, all := &k.KeyLimits, k.Limits
	setDefault(c, path+".limits.calls", &own.Calls, all.Calls)
	setDefault(c, path+".limits.minutes_per_day", &own.MinutesPerDay, all.MinutesPerDay)
	setDefault(c, path+".limits.handoffs_per_minute", &own.HandoffsPerMinute, all.HandoffsPerMinute)
	setDefault(c, path+".limits.dollars_per_day", &own.DollarsPerDay, all.DollarsPerDay)
	setDefault(c, path+".limits.dollars_per_call", &own.DollarsPerCall, all.DollarsPerCall)
}

// setDefault sets a setting to a value unless its path was set.
func setDefault[T any](c *checker, path string, setting *T, value T) {
	if !c.isSet(path) {
		*setting = value
	}
}

// usualInstructions is the default of instructions for a key.
func usualInstructions(owner bool) handoff.Instructing {
	if owner {
		return handoff.InstructAll
	}
	return handoff.InstructAdded
}

// usualApproval is the default of approve for a key. A key with a list of tools is for a program; without answer_agent
// in the list, no yes of the program counts.
func usualApproval(principal string, namesCallers bool, listed []string) handoff.Approval {
	switch {
	case listed != nil && !slices.Contains(listed, tools.AnswerAgent):
		return handoff.ApproveNone
	case principal == ownerName && !namesCallers && listed == nil:
		return handoff.ApproveAll
	}
	return handoff.ApproveVoice
}

// mayUse checks the names of machines and tools in a key.
func (c *checker) mayUse(path string, k keySetting) {
	for name, list := range map[string]struct{ words, known []string }{
		"servers": {k.Servers, c.s.serverNames()}, "tools": {k.Tools, tools.Names()},
	} {
		if k.Metrics && len(list.words) == 0 {
			continue // a key for /metrics alone needs no machines or tools
		}
		c.someOf(path+"."+name, list.words, list.known)
	}
}

// someOf checks that all words of a list are known. An empty list is a problem, too: it is probably a mistake.
func (c *checker) someOf(path string, words, known []string) {
	if words != nil && len(words) == 0 {
		c.bad(path, "names nothing; leave it out for all")
	}
	for i, word := range words {
		c.oneOf(elem(path, i), word, known...)
	}
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

// key returns the web key of an entry, without what it allows, and false if there is a problem.
func (c *checker) key(path string, k keySetting) (web.Key, bool) {
	sources := []string{k.KeyFile, k.KeyEnv, k.KeySHA256}
	if sources = slices.DeleteFunc(sources, func(text string) bool { return text == "" }); len(sources) != 1 {
		c.bad(path, "needs one of key_file, key_env and key_sha256")
		return web.Key{}, false
	}
	if k.KeySHA256 != "" {
		sum, err := hex.DecodeString(k.KeySHA256)
		if err != nil || len(sum) != sha256.Size {
			c.bad(path+".key_sha256", "must be 64 hex digits")
			return web.Key{}, false
		}
		return web.Key{Principal: k.Principal, Sum: [sha256.Size]byte(sum)}, true
	}
	from, read := path+".key_file", c.file(k.KeyFile)
	if k.KeyEnv != "" {
		from, read = path+".key_env", c.variable(k.KeyEnv)
	}
	text, err := read()
	if err == nil && !keyText.MatchString(text) {
		err = fmt.Errorf("%s", keyRule)
	}
	if err != nil {
		c.bad(from, "%v", err)
		return web.Key{}, false
	}
	return web.NewKey(k.Principal, strings.TrimSpace(text)), true
}
