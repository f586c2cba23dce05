package models

import (
	"encoding/json"
	"fmt"
	"math"
)

// Prices are what a model costs, in US dollars per million tokens. Cached tokens are input that the model was given
// before.
type Prices struct {
	TextIn      float64 `yaml:"text_in"`
	TextCached  float64 `yaml:"text_cached"`
	TextOut     float64 `yaml:"text_out"`
	AudioIn     float64 `yaml:"audio_in"`
	AudioCached float64 `yaml:"audio_cached"`
	AudioOut    float64 `yaml:"audio_out"`
	ImageIn     float64 `yaml:"image_in"`
	ImageCached float64 `yaml:"image_cached"`
}

// Tokens are what responses used, by kind. None of them is negative.
type Tokens struct {
	TextIn, TextCached, TextOut    int64
	AudioIn, AudioCached, AudioOut int64
	ImageIn, ImageCached           int64
}

// maxTokens bounds each number of one response: no response uses more, and a wrong number must not overflow a sum.
const maxTokens = 100_000_000

// Read returns the tokens of one response from its usage, raw JSON; if it is empty or unreadable there are none. Tokens
// of a server that does not report kinds count as audio, which costs most.
func Read(usage []byte) Tokens {
	var u struct {
		InputTokens  int64  `json:"input_tokens"`
		OutputTokens int64  `json:"output_tokens"`
		In           *input `json:"input_token_details"`
		Out          *struct {
			Text  int64 `json:"text_tokens"`
			Audio int64 `json:"audio_tokens"`
		} `json:"output_token_details"`
	}
	if len(usage) == 0 || json.Unmarshal(usage, &u) != nil {
		return Tokens{}
	}
	t := Tokens{AudioIn: u.InputTokens, AudioOut: u.OutputTokens}
	if u.In != nil {
		cached := kinds{Text: u.In.CachedTokens}
		if u.In.Cached != nil {
			cached = *u.In.Cached
		}
		cached = kinds{sane(cached.Text), sane(cached.Audio), sane(cached.Image)}
		t.TextIn, t.TextCached = u.In.Text-cached.Text, cached.Text
		t.AudioIn, t.AudioCached = u.In.Audio-cached.Audio, cached.Audio
		t.ImageIn, t.ImageCached = u.In.Image-cached.Image, cached.Image
	}
	if u.Out != nil {
		t.TextOut, t.AudioOut = u.Out.Text, u.Out.Audio
	}
	return Tokens{
		TextIn: sane(t.TextIn), TextCached: sane(t.TextCached), TextOut: sane(t.TextOut),
		AudioIn: sane(t.AudioIn), AudioCached: sane(t.AudioCached), AudioOut: sane(t.AudioOut),
		ImageIn: sane(t.ImageIn), ImageCached: sane(t.ImageCached),
	}
}

type kinds struct {
	Text  int64 `json:"text_tokens"`
	Audio int64 `json:"audio_tokens"`
	Image int64 `json:"image_tokens"`
}

// input counts the input tokens of a response, of which the cached ones are a part.
type input struct {
	kinds

	CachedTokens int64  `json:"cached_tokens"`
	Cached       *kinds `json:"cached_tokens_details"`
}

func sane(n int64) int64 { return min(max(n, 0), maxTokens) }

// Add returns the sum of both, kind by kind.
func (t Tokens) Add(o Tokens) Tokens {
	return Tokens{
		TextIn: t.TextIn + o.TextIn, TextCached: t.TextCached + o.TextCached, TextOut: t.TextOut + o.TextOut,
		AudioIn: t.AudioIn + o.AudioIn, AudioCached: t.AudioCached + o.AudioCached, AudioOut: t.AudioOut + o.AudioOut,
		ImageIn: t.ImageIn + o.ImageIn, ImageCached: t.ImageCached + o.ImageCached,
	}
}

// Sum returns the number of tokens of all kinds.
func (t Tokens) Sum() int64 {
	return t.TextIn + t.TextCached + t.TextOut + t.AudioIn + t.AudioCached + t.AudioOut + t.ImageIn + t.ImageCached
}

// Cost returns what tokens cost at these prices.
func (p Prices) Cost(t Tokens) Money {
	dollars := (p.TextIn*float64(t.TextIn) + p.TextCached*float64(t.TextCached) + p.TextOut*float64(t.TextOut) +
		p.AudioIn*float64(t.AudioIn) + p.AudioCached*float64(t.AudioCached) + p.AudioOut*float64(t.AudioOut) +
		p.ImageIn*float64(t.ImageIn) + p.ImageCached*float64(t.ImageCached)) / 1e6
	return Money(math.Round(min(dollars, 1e6) * float64(Dollar)))
}

// A Tariff is what the models of one server cost.
type Tariff struct {
	Own  map[string]Prices // by model name; these win
	List bool              // the server is OpenAI's, so the prices of [Known] models hold
	Else *Prices           // of every other model; nil: they are unknown
}

// Of returns the prices of a model by its name at the server; false: they are unknown.
func (t Tariff) Of(model string) (Prices, bool) {
	if own, is := t.Own[model]; is {
		return own, true
	}
	if m, is := Known(model); is { // it may be a dated release of one with own prices
		if own, is := t.Own[m.Name]; is {
			return own, true
		}
		if t.List {
			return m.Prices, true
		}
	}
	if t.Else == nil {
		return Prices{}, false
	}
	return *t.Else, true
}

// Money is an amount in billionths of a US dollar. A token costs as little as 60 of them, so sums are exact.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1e9

// Dollars returns an amount that is written in dollars, at most 9 billion of them.
func Dollars(d float64) Money {
	return Money(math.Round(min(max(d, -9e9), 9e9) * float64(Dollar)))
}

// Dollars returns the amount in dollars.
func (m Money) Dollars() float64 { return float64(m) / float64(Dollar) }

// String returns the amount as people read it: "$1.48". Amounts below half a cent are "less than a cent".
func (m Money) String() string {
	if m > 0 && m < Dollar/200 {
		return "less than a cent"
	}
	return fmt.Sprintf("$%.2f", m.Dollars())
}
