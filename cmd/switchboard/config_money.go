package main

import (
	"net/url"

	"switchboard/handoff"
	"switchboard/realtime/models"
	"switchboard/web"
)

// tariff returns the prices of the models at model.url: those of the settings, or else OpenAI's list. An unlisted model
// of OpenAI's has the highest listed price, so that no client passes a limit by asking for another name. A simulated
// voice costs nothing, unless prices are set to try them out.
func (m modelSettings) tariff() models.Tariff {
	own := models.Prices(m.Prices)
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

// isOpenAI reports whether model.url is OpenAI's own server.
func (m modelSettings) isOpenAI() bool {
	u, err := url.Parse(m.URL)
	return err == nil && u.Hostname() == openAIHost
}

// pagePrices returns the prices of the default voice model for the page; nil: they are unknown, or it costs nothing.
func pagePrices(m modelSettings) *web.Prices {
	prices, known := m.tariff().Of(m.Name)
	if !known {
		return nil
	}
	return (*web.Prices)(&prices)
}

// reasoning checks the settings of the voice model's reasoning.
func (c *checker) reasoning() {
	if effort := c.s.Model.Reasoning.Effort; effort != "" {
		c.oneOf("model.reasoning.effort", effort, "minimal", "low", "medium", "high", "xhigh")
	}
}

// money checks that the model's prices are known where costs are limited.
func (c *checker) money() {
	m := c.s.Model
	if _, known := m.tariff().Of(m.Name); known || m.URL == "" {
		return
	}
	for _, limit := range c.dollarLimits() {
		c.bad(limit, "nobody knows what %s at %s costs: set model.prices", m.Name, hostOf(m.URL))
	}
}

// dollarLimits returns the paths of the settings that limit costs.
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
