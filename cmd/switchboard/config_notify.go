package main

import (
	"errors"
	"strings"
	"time"

	"switchboard/handoff/ledger"
	"switchboard/handoff/wording"
	"switchboard/servers"
)

// speechSettings say how much callers hear, and in which language.
type speechSettings struct {
	Updates string `yaml:"updates" doc:"how much is said of work that runs, until the caller wants it otherwise: milestones, chatty or quiet"`

	Language string `yaml:"language" unset:"what the caller speaks" doc:"language in which the voice greets, speaks and asks unless the caller speaks another: ar, de, en, es, fr, hi, it, ja, ko, nl, pl, pt, ru, sv, tr, uk or zh; our own sentences in a call are in it too, and one that the caller has chosen on the page wins"`
}

// debugSettings are for people who debug calls.
type debugSettings struct {
	Ticks bool `yaml:"ticks" unset:"false" doc:"keep a tick log of each call, in the folder ticks of the state directory: who spoke in which 20 ms, what was open, and which outcome was told; no words"`
}

// approvalSettings say how long an agent's question waits.
type approvalSettings struct {
	AskAgain span `yaml:"ask_again" doc:"when a question that nobody answers is asked once more; after as long again it goes to notify"`
	GiveUp   span `yaml:"give_up" doc:"when it is declined, because nobody answered"`
}

// workSettings say how long Switchboard waits for work that gives no sign.
type workSettings struct {
	Silence  span `yaml:"silence" doc:"after so long without a sign of work that runs, the caller is told once; it is watched on and never ended"`
	Patience span `yaml:"patience" doc:"how long a machine that was lost in the middle of work is looked for, before what became of it counts as unknown"`
}

// historySettings say how long ended work is remembered.
type historySettings struct {
	Keep span `yaml:"keep" doc:"how long work is remembered after its outcome was heard, at least 24h; what nobody heard waits"`
}

// minHistory is the shortest history: until then, a request may be repeated under its idempotency key.
const minHistory = ledger.KeyFor

// notifySettings are the webhook for people who are in no call.
type notifySettings struct {
	Webhook        secret `yaml:"webhook" unset:"nobody is told" doc:"address that is told what nobody heard, https://host/path"`
	TokenFile      string `yaml:"token_file" doc:"file with the bearer token for webhook; or"`
	TokenEnv       string `yaml:"token_env" doc:"variable with the bearer token for webhook"`
	AllowPlaintext bool   `yaml:"allow_plaintext" unset:"false" doc:"allow http:// to another machine: whoever is on the way can read along"`

	AllowPrivate bool `yaml:"allow_private" unset:"false" doc:"allow a webhook by a name that leads into a private network, and a proxy of the environment; an address or localhost needs no leave"`

	Token func() (string, error) `yaml:"-"` // nil without a token; reads it anew each time
}

// A span is a duration above zero, written as 90s, 30m or 1h30m.
type span time.Duration

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	if d <= 0 {
		return errors.New("not after now")
	}
	*s = span(d)
	return nil
}

// String returns the span as a file has it, without zero minutes and seconds at its end.
func (s span) String() string {
	text := time.Duration(s).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// rest checks the remaining settings: speech, media, approvals, history and notify.
func (c *checker) rest() {
	c.oneOf("speech.updates", c.s.Speech.Updates, "milestones", "chatty", "quiet")
	if c.s.Speech.Language != "" {
		c.oneOf("speech.language", c.s.Speech.Language, wording.Languages()...)
	}
	if c.s.Model.Media != "" {
		c.oneOf("model.media", c.s.Model.Media, mediaDirect, mediaThrough)
	}
	if a := c.s.Approvals; a.AskAgain >= a.GiveUp {
		at := "approvals.ask_again"
		if _, set := c.places[at]; !set {
			at = "approvals.give_up"
		}
		c.bad(at, "a question is given up after %s, before it would be asked again after %s", a.GiveUp, a.AskAgain)
	}
	if keep := time.Duration(c.s.History.Keep); keep < minHistory {
		c.bad("history.keep", "%s is too short: at least %s, because until then a request may come again", c.s.History.Keep,
			span(minHistory))
	}
	c.notify()
}

// notify checks the webhook. It never quotes the address, which often is a secret.
func (c *checker) notify() {
	n := &c.s.Notify
	address := n.Webhook.Reveal()
	var from string
	n.Token, from = c.token("notify", "token", n.TokenFile, n.TokenEnv)
	if n.Token != nil && address == "" {
		c.bad(from, "goes with a webhook only")
	} else if n.Token != nil {
		if _, err := n.Token(); err != nil {
			c.bad(from, "%v", err)
		}
	}
	if address == "" {
		if n.AllowPlaintext {
			c.bad("notify.allow_plaintext", "goes with http:// addresses only")
		}
		if n.AllowPrivate {
			c.bad("notify.allow_private", "goes with a webhook only")
		}
		return
	}
	servers.Address{
		Row: "webhook", URL: address, Plain: "http", What: "an address of http or https, such as https://ntfy.example.com/me",
		Secret: "token", Allowed: n.AllowPlaintext,
	}.Check(report{c, "notify"})
}
