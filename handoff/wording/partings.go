package wording

// MoneyUsedUp says that a call ends because its money is used up.
func (l Language) MoneyUsedUp() string { return l.say("call.money") }

// LastMinute says that the minutes for calls run out.
func (l Language) LastMinute() string { return l.say("call.minute") }
