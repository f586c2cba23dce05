package models

import (
	"reflect"
	"testing"
	"time"
)

// TestKnown: a model is found by its name and by those of its snapshots, and by nothing longer.
func TestKnown(t *testing.T) {
	for name, want := range map[string]string{
		"gpt-realtime-2.1": "gpt-realtime-2.1", "gpt-realtime-2.1-2026-10-01": "gpt-realtime-2.1",
		"gpt-realtime-2.1-mini": "gpt-realtime-2.1-mini", "gpt-realtime-2": "gpt-realtime-2",
		"gpt-realtime": "gpt-realtime", "gpt-realtime-2025-08-28": "gpt-realtime",
		"gpt-realtime-mini-2025-12-15": "gpt-realtime-mini", "gpt-realtime-1.5": "gpt-realtime-1.5",
		"gpt-realtime-whisper": "", "gpt-realtime-2025-13-45": "", "gpt-realtime-3": "", "": "", "other": "",
	} {
		if got, is := Known(name); got.Name != want || is != (want != "") {
			t.Errorf("%q: %q", name, got.Name)
		}
	}
}

// TestEnds: a model that ends names one that does not, which is known.
func TestEnds(t *testing.T) {
	ends := 0
	for _, m := range known {
		next, is := Known(m.Next)
		if m.Ends.IsZero() != (m.Next == "") || m.Next != "" && (!is || !next.Ends.IsZero()) {
			t.Errorf("%s ends on %v, next is %q", m.Name, m.Ends, m.Next)
		}
		if !m.Ends.IsZero() {
			ends++
		}
		if m.Prices.TextIn <= 0 || m.Prices.AudioOut <= m.Prices.AudioCached || m.Prices.ImageIn <= 0 {
			t.Errorf("%s: %+v", m.Name, m.Prices)
		}
	}
	if ends != 2 {
		t.Errorf("%d models end", ends)
	}
	if m, _ := Known("gpt-realtime-mini"); m.Ends.Format(time.DateOnly) != "2027-01-20" || m.Next != "gpt-realtime-2.1-mini" {
		t.Errorf("%+v", m)
	}
}

// TestCost: what a response costs follows from its usage, kind by kind; what is not told of kinds counts as sound.
func TestCost(t *testing.T) {
	for name, c := range map[string]struct {
		usage  string
		tokens int64
		want   Money
	}{
		"every kind": {`{"total_tokens":30000,"input_tokens":20000,"output_tokens":10000,"input_token_details":{"text_tokens":12000,
			"audio_tokens":8000,"cached_tokens":11000,"cached_tokens_details":{"text_tokens":8000,"audio_tokens":3000}},
			"output_token_details":{"text_tokens":2000,"audio_tokens":8000}}`, 30000, Dollars(0.016 + 0.0032 + 0.16 + 0.0012 + 0.048 + 0.512)},
		"cached without kinds": {`{"input_token_details":{"text_tokens":1000,"cached_tokens":400}}`, 1000, Dollars(0.0024 + 0.00016)},
		"pictures": {`{"input_token_details":{"image_tokens":1000,"cached_tokens_details":{"image_tokens":400}}}`, 1000,
			Dollars(0.003 + 0.0002)},
		"no kinds":          {`{"total_tokens":110,"input_tokens":100,"output_tokens":10}`, 110, Dollars(0.0032 + 0.00064)},
		"one cached token":  {`{"input_token_details":{"text_tokens":1,"cached_tokens":1}}`, 1, 400},
		"more cached":       {`{"input_token_details":{"text_tokens":1,"cached_tokens":3}}`, 3, 1200},
		"negative":          {`{"input_tokens":-5,"output_tokens":-7}`, 0, 0},
		"negative cached":   {`{"input_token_details":{"text_tokens":10,"cached_tokens":-90}}`, 10, 40_000},
		"beyond reason":     {`{"input_tokens":9000000000000000000}`, maxTokens, 3200 * Dollar},
		"no usage":          {``, 0, 0},
		"none":              {`null`, 0, 0},
		"of another nature": {`{"type":"duration","seconds":3}`, 0, 0},
		"not to be read":    {`{"input_tokens":"many"}`, 0, 0},
	} {
		got := Read([]byte(c.usage))
		if got.Sum() != c.tokens || full.Cost(got) != c.want {
			t.Errorf("%s: %+v costs %d, want %d", name, got, full.Cost(got), c.want)
		}
	}
	twice := Tokens{1, 2, 3, 4, 5, 6, 7, 8}.Add(Tokens{1, 2, 3, 4, 5, 6, 7, 8})
	if twice != (Tokens{2, 4, 6, 8, 10, 12, 14, 16}) || twice.Sum() != 72 {
		t.Errorf("a sum: %+v", twice)
	}
}

// TestTariff: own prices come first, then what is known of OpenAI's models, then what holds for all others.
func TestTariff(t *testing.T) {
	own := Prices{TextIn: 1}
	dearest := Dearest()
	for name, c := range map[string]struct {
		tariff Tariff
		model  string
		want   *Prices
	}{
		"own":                 {Tariff{Own: map[string]Prices{"gpt-realtime": own}, List: true, Else: &dearest}, "gpt-realtime", &own},
		"a dated release":     {Tariff{Own: map[string]Prices{"gpt-realtime": own}, List: true}, "gpt-realtime-2025-08-28", &own},
		"listed":              {Tariff{Own: map[string]Prices{"gpt-realtime": own}, List: true, Else: &dearest}, "gpt-realtime-2", &full},
		"unknown":             {Tariff{List: true, Else: &dearest}, "gpt-realtime-9", &dearest},
		"elsewhere":           {Tariff{Else: &own}, "gpt-realtime-2", &own},
		"nothing is known":    {Tariff{}, "gpt-realtime-2", nil},
		"a model without one": {Tariff{List: true}, "other", nil},
	} {
		got, is := c.tariff.Of(c.model)
		if is != (c.want != nil) || is && got != *c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, m := range known {
		for i, most := range reflect.ValueOf(dearest).Fields() {
			if price := reflect.ValueOf(m.Prices).FieldByIndex(i.Index); price.Float() > most.Float() {
				t.Errorf("%s costs more: %s is %v", m.Name, i.Name, price)
			}
		}
	}
}

// TestMoney: amounts are exact down to a token of the cheapest kind, and are read in cents.
func TestMoney(t *testing.T) {
	for _, c := range []struct {
		dollars float64
		want    Money
		said    string
	}{
		{0, 0, "$0.00"},
		{0.06 / 1e6, 60, "less than a cent"},
		{0.004, 4e6, "less than a cent"},
		{0.005, 5e6, "$0.01"},
		{1.48, 1_480_000_000, "$1.48"},
		{1e300, 9e18, "$9000000000.00"},
		{-1, -1e9, "$-1.00"},
	} {
		got := Dollars(c.dollars)
		if got != c.want || got.String() != c.said {
			t.Errorf("%v: %d, %q", c.dollars, got, got)
		}
	}
	if got := (3 * Dollar / 2).Dollars(); got != 1.5 {
		t.Errorf("back in dollars: %v", got)
	}
}
