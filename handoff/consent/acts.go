package consent

import "slices"

// actNames are the acts of which a word file may hold the words, each with the words of a question that mean
// it. Set once.
var actNames = map[string]map[string]bool{
	"install": setOf("install add ci i"),
	"test":    setOf("test tests pytest check vitest jest"),
	"build":   setOf("build make compile tsc"),
	"push":    setOf("push"),
	"commit":  setOf("commit"),
	"merge":   setOf("merge"),
	"fetch":   setOf("curl wget fetch download pull clone"),
	"edit":    setOf("edit files change patch write"),
	"restart": setOf("restart reboot"),
	"start":   setOf("start up serve dev launch"),
	"copy":    setOf("copy"),
	"deploy":  setOf("deploy"),
	"delete":  setOf("rm delete remove del unlink rmdir"),
	"update":  setOf("update upgrade"),
	"move":    setOf("mv move rename"),
	"create":  setOf("mkdir touch create new init"),
	"format":  setOf("format fmt prettier gofmt lint eslint"),
	"migrate": setOf("migrate migration migrations"),
}

// does adds the acts that a word of the question means.
func (a *asking) does(word string) {
	for name, words := range actNames {
		if words[word] && !slices.Contains(a.about, name) {
			a.about = append(a.about, name)
		}
	}
	if slices.Contains(a.about, "install") && !slices.Contains(a.about, "fetch") { // what is installed is fetched first
		a.about = append(a.about, "fetch")
	}
}

// inflected are the other forms of a word of the question that mean the same: "tests" for "test".
func inflected(word string) []string {
	out := []string{word + "s", word + "es", word + "ing"}
	if short := word[:len(word)-1]; len(short) > 2 && word[len(word)-1] == 's' {
		out = append(out, short)
	}
	return out
}
