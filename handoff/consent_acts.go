package handoff

import (
	"path"
	"strings"
	"unicode/utf8"
)

// Bounds of what of a question may be repeated in a yes.
const (
	maxActWords    = 8 // words of a command: its program, subcommand and first operands
	maxNameTokens  = 4 // tokens of a machine's name
	maxActPhrases  = 16
	maxMachineName = 16
)

// AskedAbout returns what a question asks, for [ReadConsent]: the words of its command or files, the
// machine's names, and the text with which we asked.
func AskedAbout(q Question, machines []string, text string) ConsentQuestion {
	asked := ConsentQuestion{Machines: machines, Text: text}
	switch q.Kind {
	case QuestionCommand:
		asked.Acts = commandActs(q.Command)
	case QuestionFileChange:
		asked.Acts = []string{"edit", "files"}
		for _, c := range q.Changes[:min(len(q.Changes), 3)] {
			asked.Acts = append(asked.Acts, path.Base(c))
		}
	}
	return asked
}

// wrappers are programs that run another one: nobody names them when they say what is run.
var wrappers = setOf("sh bash zsh dash fish env sudo doas nohup nice time exec command lc c xargs cmd powershell pwsh cd")

// commandActs takes the first words of a command that name what it does.
func commandActs(command string) []string {
	var out []string
	for _, field := range strings.Fields(clip(command, 400)) {
		field = strings.Trim(field, `"'();&|`)
		if strings.HasPrefix(field, "-") || strings.Contains(field, "=") {
			continue
		}
		word := path.Base(field)
		if tokens := hearWords(word).tokens; len(tokens) == 0 || wrappers[tokens[0]] {
			continue
		}
		if out = append(out, word); len(out) == maxActWords/2 {
			break
		}
	}
	return out
}

// asking is what the words of the question add to the harmless ones.
type asking struct {
	machines []string   // written together
	book     phrasebook // what a yes may repeat
	acts     map[string]bool
}

func askedWords(q ConsentQuestion) asking {
	a := asking{book: phrasebook{}, acts: map[string]bool{}}
	for _, name := range q.Machines[:min(len(q.Machines), maxMachineName)] {
		tokens := hearWords(name).tokens
		if len(tokens) == 0 || len(tokens) > maxNameTokens || len(tokens) == 1 && !harmlessAct(tokens[0]) {
			continue
		}
		a.machines = append(a.machines, strings.Join(tokens, ""))
	}
	for _, act := range q.Acts[:min(len(q.Acts), maxActPhrases)] {
		for _, t := range hearWords(act).tokens {
			if len(a.acts) < maxActWords && harmlessAct(t) {
				a.acts[t] = true
			}
		}
	}
	for _, row := range actForms {
		if a.mentions(row.any) {
			for _, form := range row.forms {
				a.add(form, kindTail)
			}
			for _, verb := range row.verbs {
				a.verb(verb)
			}
		}
	}
	for t := range a.acts {
		a.add([]string{t}, kindTail)
		a.add([]string{"run", "the", t}, kindYes)
	}
	return a
}

func (a *asking) add(tokens []string, kind phraseKind) {
	a.book[tokens[0]] = append(a.book[tokens[0]], phrase{tokens, kind})
}

// verb lets a reply say the act itself: "install it". The bare verb only follows a yes.
func (a *asking) verb(verb string) {
	a.add([]string{verb}, kindTail)
	for _, object := range []string{"it", "that", "this", "them"} {
		a.add([]string{verb, object}, kindYes)
	}
	for t := range a.acts {
		if t != verb {
			a.add([]string{verb, "the", t}, kindYes)
		}
	}
}

func (a asking) mentions(words map[string]bool) bool {
	for t := range a.acts {
		if words[t] {
			return true
		}
	}
	return false
}

// at calls take for what of the question the tokens begin with.
func (a asking) at(tokens []string, take func(length int, kind phraseKind)) {
	a.book.at(tokens, take)
	for _, n := range []int{a.machine(tokens), a.on(tokens)} {
		if n > 0 {
			take(n, kindCalled)
		}
	}
}

// on is the length of "on bigpc" at the front, or 0.
func (a asking) on(tokens []string) int {
	at := 0
	for at < len(tokens) && (tokens[at] == "on" || at > 0 && tokens[at] == "the") {
		at++
	}
	if at == 0 || at == len(tokens) {
		return 0
	}
	if n := a.machine(tokens[at:]); n > 0 {
		return at + n
	}
	return 0
}

// machine is the length of the machine's name at the front, however its parts are spaced, or 0.
func (a asking) machine(tokens []string) int {
	joined := ""
	for n, t := range tokens[:min(len(tokens), maxNameTokens)] {
		joined += t
		for _, name := range a.machines {
			if name == joined {
				return n + 1
			}
		}
	}
	return 0
}

// named tells whether the tokens name the machine or the act.
func (a asking) named(tokens []string) bool {
	for i, t := range tokens {
		if a.acts[t] || a.machine(tokens[i:]) > 0 {
			return true
		}
		for _, p := range a.book[t] {
			if p.kind == kindTail && startsWith(tokens[i:], p.tokens) {
				return true
			}
		}
	}
	return false
}

// loaded are words that change what a yes means. A command or a machine that contains them cannot make
// them harmless: agents write commands.
var loaded = setOf("if unless when whenever while until till once only just all always every everything everyone any anything both " +
	"each ever again twice more other others another also too and or but because since instead rather maybe perhaps " +
	"probably possibly hardly barely later after before first last next then than without with except safe say says said " +
	"he she they we you i me my your who what why how where which would could should might think guess suppose want " +
	"user caller system agent assistant wenn falls immer alle alles si quand toujours tout siempre todo sempre tutto tudo " +
	"als altijd alles jezeli jesli zawsze wszystko eger her alltid om allt")

// harmlessAct tells whether a word of a question may be repeated in a yes.
func harmlessAct(token string) bool {
	if utf8.RuneCountInString(token) < 2 || loaded[token] || strings.Trim(token, "0123456789") == "" {
		return false
	}
	one := heardWords{tokens: []string{token}, apart: []bool{true}}
	return !one.has(denyWords) && !one.has(holdWords)
}

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

// An actForm is an act with the words in which a caller may repeat it.
type actForm struct {
	any   map[string]bool // words of the question that mean the act
	verbs []string        // English verbs
	forms [][]string      // other words
}

// actForms are acts that agents often ask for. Set once.
var actForms = []actForm{
	{setOf("install add ci i"), []string{"install"}, phraseList("the install, the installation, installation, installing, installieren, installier, installiere, installer, installe, installation, instala, instalar, instálalo, installa, installare, instale, installeren, installeer, zainstaluj, instalacja, kur, yükle, installera, установи, установку, ثبت, التثبيت, इंस्टॉल, इंस्टॉल करो, इंस्टॉल कर दो, インストール, インストールして, インストールしてください, 安装, 安装吧, 安裝, 설치해, 설치, 설치해 줘, 설치해 주세요")},
	{setOf("test tests pytest check"), []string{"test"}, phraseList("the tests, tests, test, tests laufen, die tests, les tests, las pruebas, los tests, i test, os testes, de tests, testy, testleri, testerna, тесты, الاختبارات, टेस्ट, テスト, テストを, 测试, 測試, 테스트, 테스트를")},
	{setOf("build make compile"), []string{"build", "compile"}, phraseList("the build, bauen, baue, compile, compilar, compila, bouwen, zbuduj, derle, bygg, собери, сборку, ビルド, ビルドして, 构建, 编译, 빌드, 빌드해")},
	{setOf("push"), []string{"push"}, phraseList("the push, pushen, pushe, pousse, pushea, haz push, pushear, fai push, faz push, wypchnij, gönder, pusha, пуш, пушь, пушни, プッシュ, プッシュして, 推送, 推送吧, 푸시, 푸시해, 푸시해 줘")},
	{setOf("commit"), []string{"commit"}, phraseList("the commit, committen, commite, committe, commitea, コミット, コミットして, 提交, 提交吧, коммит, коммить, 커밋, 커밋해")},
	{setOf("merge"), []string{"merge"}, phraseList("the merge, mergen, fusionne, fusiona, マージ, マージして, 合并, 合併, слей, 머지, 병합")},
	{setOf("curl wget fetch download pull clone"), []string{"download", "fetch", "pull", "clone"}, phraseList("the download, herunterladen, lade es herunter, télécharge, descarga, descárgalo, scarica, scaricalo, baixa, baixar, download, pobierz, indir, ladda ner, скачай, скачивай, ダウンロード, ダウンロードして, 下载, 下載, 다운로드")},
	{setOf("edit files change patch write"), []string{"edit", "change", "write", "apply", "patch", "save"}, phraseList("the files, the file, files, file, those files, these files, the patch, ändern, ändere es, die dateien, die datei, modifie, les fichiers, le fichier, los archivos, el archivo, i file, os arquivos, zmień, pliki, dosyaları, filerna, файлы, ファイル, 文件, 修改, 파일")},
	{setOf("restart reboot"), []string{"restart"}, phraseList("the restart, neu starten, neustarten, redémarre, reinicia, riavvia, reinicie, herstart, starta om, перезапусти, 再起動, 重启, 재시작")},
	{setOf("deploy"), []string{"deploy"}, phraseList("the deploy, the deployment, deployen, déploie, despliega, デプロイ, 部署, 배포")},
	{setOf("rm delete remove del unlink"), []string{"delete", "remove"}, phraseList("löschen, lösche es, supprime, borra, bórralo, elimina, apaga, usuń, sil, ta bort, удали, удаляй, 削除, 削除して, 删除, 삭제, 삭제해")},
}
