package main

import (
	"net/url"
	"strings"

	"switchboard/handoff"
	"switchboard/realtime/models"
	"switchboard/servers"
	"switchboard/web"
)

// modelSettings is the voice model.
type modelSettings struct {
	URL     string            `yaml:"url"`
	Name    string            `yaml:"name"`
	Aliases map[string]string `yaml:"aliases"`
	KeyEnv  string            `yaml:"key_env"`
	Media   string            `yaml:"media"`
	// Of model.name; at a server that is not OpenAI's, of all its models.
	Prices    models.Prices `yaml:"prices"`
	Reasoning struct {
		Effort string `yaml:"effort"`
	} `yaml:"reasoning"`

	Key secret `yaml:"-"` // what is sent to URL
}

// The values of model.media.
const (
	mediaDirect  = "direct"
	mediaThrough = "through"
)

// isOpenAI reports whether model.url is OpenAI's own server.
func (m modelSettings) isOpenAI() bool {
	u, err := url.Parse(m.URL)
	return err == nil && u.Hostname() == openAIHost
}

// direct reports whether the page's sound goes directly to the voice model's server; by default to OpenAI's alone.
func (m modelSettings) direct() bool {
	return m.Media == mediaDirect || m.Media == "" && m.isOpenAI()
}

// check checks the voice model, and completes its address and the key that is sent there.
func (m *modelSettings) check(r report) {
	for name, model := range m.Aliases {
		if name == "" || model == "" {
			r.Bad("aliases", "needs a name, and the model that it means")
		}
	}
	r.OneOf("media", m.Media, mediaDirect, mediaThrough)
	r.OneOf("reasoning.effort", m.Reasoning.Effort, "minimal", "low", "medium", "high", "xhigh")
	if read, row := r.secret("key", "", m.KeyEnv); read != nil {
		text, err := read()
		if err != nil {
			r.Bad(row, "%v", err)
		}
		m.Key = newSecret(text)
	}
	openAI := strings.TrimSpace(r.env(openAIKey))
	if m.URL == "" {
		if m.KeyEnv == "" && openAI != "" {
			m.Key = newSecret(openAI)
		}
		if m.Key.Reveal() != "" {
			m.URL = openAIURL
		}
		return
	}
	m.checkURL(r, openAI)
}

// checkURL checks the address, and which key goes there: that of OpenAI only to OpenAI, unless key_env names its
// variable for another address.
func (m *modelSettings) checkURL(r report, openAI string) {
	u, err := url.Parse(m.URL)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Scheme != "ws" && u.Scheme != "wss" {
		r.Bad("url", "must be the address of a Realtime server, such as %s", openAIURL)
		return
	}
	here, isOpenAI := servers.Loopback(u.Hostname()), m.isOpenAI()
	switch {
	case u.Scheme == "ws" && !here:
		r.Bad("url", "must be wss: the key and what you say would go there in the clear")
	case m.KeyEnv != "" || here: // a model on this machine may need no key
	case isOpenAI && openAI == "":
		r.Bad("url", "OpenAI needs a key: set %s", openAIKey)
	case isOpenAI:
		m.Key = newSecret(openAI)
	default:
		r.Bad("url", "%s goes to api.openai.com alone: name the variable with the key for %s in model.key_env", openAIKey,
			u.Hostname())
	}
}

// tariff returns the prices of the models at model.url: those of the settings, or else OpenAI's list. An unlisted model
// of OpenAI's has the highest listed price, so that no client passes a limit by asking for another name. A simulated
// voice costs nothing, unless prices are set to try them out.
func (m modelSettings) tariff() models.Tariff {
	own := m.Prices
	t := models.Tariff{List: m.isOpenAI()}
	switch {
	case t.List:
		dearest := models.Dearest()
		t.Else = &dearest
		if own != (models.Prices{}) {
			t.Own = map[string]models.Prices{m.Name: own}
		}
	case own != models.Prices{}:
		t.Else = &own
	}
	return t
}

// pagePrices returns the prices of the default voice model for the page; nil: they are unknown, or it costs nothing.
func pagePrices(m modelSettings) *web.Prices {
	prices, known := m.tariff().Of(m.Name)
	if !known {
		return nil
	}
	return (*web.Prices)(&prices)
}

// checkMoney checks that the model's prices are known where costs are limited.
func (s *settings) checkMoney(r report) {
	m := s.Model
	if _, known := m.tariff().Of(m.Name); known || m.URL == "" {
		return
	}
	limited := func(row string, l handoff.Limits) {
		for name, dollars := range map[string]float64{"dollars_per_day": l.DollarsPerDay, "dollars_per_call": l.DollarsPerCall} {
			if row := join(row, name); dollars > 0 && r.IsSet(row) {
				r.Bad(row, "nobody knows what %s at %s costs: set model.prices", m.Name, hostOf(m.URL))
			}
		}
	}
	limited("limits", s.Limits)
	for i, k := range s.Keys {
		limited(join(elem("keys", i), "limits"), k.Limits)
	}
}
