package main

import (
	"net/url"

	"switchboard/handoff"
	"switchboard/realtime/models"
	"switchboard/web"
)

// tariff is what models cost at model.url: with prices in the settings as they say, else as OpenAI lists them. A model
// of OpenAI's that is not listed counts as the dearest, so that no limit is passed by asking for another name. A
// simulated voice costs nothing, unless prices are set to try what they lead to.
func (m modelSettings) tariff() models.Tariff {
	given := models.Prices(m.Prices)
	t := models.Tariff{List: m.isOpenAI()}
	switch {
	case t.List:
		dearest := models.Dearest()
		t.Else = &dearest
		if given != (models.Prices{}) {
			t.Own = map[string]models.Prices{m.Name: given}
		}
	case given != models.Prices{}:
		t.Else = &given
	}
	return t
}

// isOpenAI reports whether the voice model is one of OpenAI's own server.
func (m modelSettings) isOpenAI() bool {
	u, err := url.Parse(m.URL)
	return err == nil && u.Hostname() == openAIHost
}

// pagePrices are what the page is told of the model that calls have by default; nil: nobody knows, or it costs nothing.
func pagePrices(m modelSettings) *web.Prices {
	prices, known := m.tariff().Of(m.Name)
	if !known {
		return nil
	}
	return (*web.Prices)(&prices)
}

// reasoning checks how the voice model is to think.
func (c *checker) reasoning() {
	if effort := c.s.Model.Reasoning.Effort; effort != "" {
		c.oneOf("model.reasoning.effort", effort, "minimal", "low", "medium", "high", "xhigh")
	}
}

// money checks that what is limited can be counted.
func (c *checker) money() {
	m := c.s.Model
	if _, known := m.tariff().Of(m.Name); known || m.URL == "" {
		return
	}
	for _, limit := range c.dollarLimits() {
		c.bad(limit, "nobody knows what %s at %s costs: set model.prices", m.Name, hostOf(m.URL))
	}
}

// dollarLimits are the settings that limit money.
func (c *checker) dollarLimits() []string {
	var all []string
	add := func(path string, l handoff.Limits) {
		if l.DollarsPerDay > 0 {
			all = append(all, path+".dollars_per_day")
		}
		if l.DollarsPerCall > 0 {
			all = append(all, path+".dollars_per_call")
		}
	}
	add("limits", c.s.Limits.limits())
	for i, k := range c.s.Keys {
		add(elem("keys", i)+".limits", limitSettings(k.Limits).limits())
	}
	return all
}
