package wording

// MoneyUsedUp says that a call ends because its money is used up; "" in English, where the voice model finds the words.
func (l Language) MoneyUsedUp() string { return l.own("call.money") }

// LastMinute says that the minutes for calls run out, in the same way.
func (l Language) LastMinute() string { return l.own("call.minute") }

// own returns a sentence without parameters that English does not have, or "".
func (l Language) own(name string) string {
	s, ok := l.find(name)
	if !ok {
		return ""
	}
	return s[0]
}
