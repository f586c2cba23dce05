package wording

// MoneyUsedUp says that a call ends because its money is used up. It is "" in English, in which the voice model finds
// its own words.
func (l Language) MoneyUsedUp() string { return l.own("call.money") }

// LastMinute says that the minutes for calls run out. It is "" in English, too.
func (l Language) LastMinute() string { return l.own("call.minute") }

// own returns a sentence without parameters if the language has it, or "".
func (l Language) own(name string) string {
	s, ok := l.find(name)
	if !ok {
		return ""
	}
	return s[0]
}
