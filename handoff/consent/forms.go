package consent

// An actForm is an act with the words in which a caller may repeat it.
type actForm struct {
	any   map[string]bool // words of the question that mean the act
	verbs []string        // English verbs
	forms [][]string      // other words, of any language
}

// actForms are acts that agents often ask for. Set once.
var actForms = []actForm{
	{setOf("install add ci i"), []string{"install", "add"}, phraseList(`the install, the installation, installation, installing, packages, the packages, those packages, these packages, package, the package, dependencies, the dependencies,
		installieren, installier, installiere, die pakete, das paket, pakete, installer, installe, les paquets, paquets, le paquet, instala, instalar, instálalo, instálalos, los paquetes, paquetes, el paquete, installa, installare, installalo, i pacchetti, pacchetti, instale, os pacotes, pacotes, installeren, installeer, de pakketten, pakketten, zainstaluj, instalacja, pakiety, kur, yükle, paketleri, installera, paketen, ставь, установи, устанавливай, установку, пакеты,
		ثبت, ثبتها, التثبيت, الحزم, इंस्टॉल, इंस्टॉल करो, इंस्टॉल कर दो, पैकेज, インストール, インストールして, インストールしてください, パッケージ, パッケージを, 安装, 安装吧, 安裝, 装, 装吧, 包, 设置吧, 설치, 설치해, 설치해 줘, 설치해 주세요, 패키지, 패키지를`)},
	{setOf("test tests pytest check"), []string{"test"}, phraseList(`the tests, tests, tests laufen, die tests, teste, testen, les tests, lancer les tests, las pruebas, los tests, i test, os testes, de tests, testy, testleri, testerna, тесты, الاختبارات, टेस्ट, テスト, テストを, 测试, 測試, 测试吧, 테스트, 테스트해, 테스트를`)},
	{setOf("build make compile"), []string{"build", "compile"}, phraseList(`the build, bauen, baue, bau es, construis, compile, compiler, compilar, compila, compílalo, bouwen, zbuduj, derle, bygg, собери, собирай, сборку, ビルド, ビルドして, 构建, 编译, 빌드, 빌드해`)},
	{setOf("push"), []string{"push"}, phraseList(`the push, the branch, pushen, pushe, pousse, pousser, tu peux pousser, pushea, súbelo, subirlo, haz push, pushear, fai push, pusha, faz push, envia, duwen, wypchnij, wypychaj, gönder, pushla, pusha, пуш, пушь, пушни, отправляй, ادفع, पुश, पुश करो, पुश कर दो, プッシュ, プッシュして, 推送, 推送吧, 推, 推吧, 推上去, 푸시, 푸시해, 푸시해 줘, 푸시하세요`)},
	{setOf("commit"), []string{"commit"}, phraseList(`the commit, committen, committe, commite, commitea, commita, コミット, コミットして, 提交, 提交吧, коммит, коммить, 커밋, 커밋해`)},
	{setOf("merge"), []string{"merge"}, phraseList(`the merge, mergen, fusionne, fusionner, fusiona, fusionar, unisci, mescla, połącz, birleştir, слей, сливай, マージ, マージして, 合并, 合并吧, 合併, 머지, 병합`)},
	{setOf("curl wget fetch download pull clone"), []string{"download", "fetch", "pull", "clone"}, phraseList(`the download, herunterladen, lade es herunter, lad es runter, télécharge, télécharger, descarga, descárgalo, scarica, scaricalo, baixa, baixar, pobierz, indir, ladda ner, скачай, скачивай, ダウンロード, ダウンロードして, 下载, 下载吧, 下載, 다운로드, 다운로드해`)},
	{setOf("edit files change patch write"), []string{"edit", "change", "write", "apply", "patch", "save"}, phraseList(`the files, the file, files, file, those files, these files, the patch, ändern, ändere es, die dateien, die datei, die änderungen, modifie, modifier, les fichiers, le fichier, cambia, los archivos, el archivo, modifica, i file, muda, os arquivos, wijzig, zmień, pliki, değiştir, dosyaları, ändra, filerna, измени, файлы, ファイル, 変更, 変更して, 文件, 修改, 修改吧, 改吧, 파일, 수정해`)},
	{setOf("restart reboot"), []string{"restart", "reboot"}, phraseList(`the restart, neu starten, neustarten, redémarre, redémarrer, reinicia, reiniciar, riavvia, reinicie, herstart, zrestartuj, yeniden başlat, starta om, перезапусти, 再起動, 再起動して, 重启, 重启吧, 재시작, 재시작해`)},
	{setOf("copy"), []string{"copy", "make"}, phraseList(`a copy, the copy, make a copy, make the copy, eine kopie, mach eine kopie, kopieren, kopiere, une copie, fais une copie, una copia, haz una copia, fai una copia, faz uma cópia, uma cópia, een kopie, maak een kopie, kopię, zrób kopię, kopya, en kopia, gör en kopia, копию, сделай копию, نسخة, कॉपी, コピー, コピーして, 复制, 复制吧, 副本, 복사, 복사해`)},
	{setOf("deploy"), []string{"deploy"}, phraseList(`the deploy, the deployment, deployen, déploie, déployer, despliega, distribuisci, デプロイ, デプロイして, 部署, 部署吧, 배포, 배포해`)},
	{setOf("rm delete remove del unlink rmdir"), []string{"delete", "remove"}, phraseList(`get rid of it, get rid of that, get rid of them, the folder, that folder, this folder, folder, the directory, that directory, directory, lösch, löschen, lösche, lösche es, lösch es, lösch das, den ordner, ordner, das verzeichnis, supprime, supprimer, supprime le, le dossier, borra, bórralo, bórrala, borrarla, borrarlo, borrar, elimina, eliminar, elimínala, elimínalo, la carpeta,
		eliminala, eliminalo, cancella la cartella, la cartella, apaga, apagar, apague, a pasta, verwijder, verwijderen, de map, usuń, folder, sil, klasörü, ta bort, mappen, удали, удаляй, папку, احذف, احذفه, المجلد, हटाओ, हटा दो, डिलीट करो, डिलीट कर दो, फ़ोल्डर, 削除, 削除して, 削除してください, 消して, フォルダ, フォルダを, フォルダー, 删除, 删除吧, 删, 删吧, 删掉, 删掉吧, 文件夹, 刪除, 삭제, 삭제해, 삭제해 줘, 삭제하세요, 폴더, 폴더를`)},
}

// numberForms are small numbers as they are written and said. Set once.
var numberForms = [][][]string{
	phraseList("2, two, zwei, deux, dos, due, dois, duas, twee, dwa, iki, två, два, две, اثنان, दो, 二, 两, 둘, 두"),
	phraseList("3, three, drei, trois, tres, tre, três, drie, trzy, üç, три, ثلاثة, तीन, 三, 셋, 세"),
	phraseList("4, four, vier, quatre, cuatro, quattro, quatro, cztery, dört, fyra, четыре, أربعة, चार, 四, 넷, 네개"),
	phraseList("5, five, fünf, cinq, cinco, cinque, vijf, pięć, beş, fem, пять, خمسة, पांच, 五"),
	phraseList("6, six, sechs, seis, sei, zes, sześć, altı, sex, шесть, ستة, 六"),
	phraseList("7, seven, sieben, sept, siete, sette, sete, zeven, siedem, yedi, sju, семь, سبعة, 七"),
	phraseList("8, eight, acht, huit, ocho, otto, oito, osiem, sekiz, åtta, восемь, ثمانية, 八"),
	phraseList("9, nine, neun, neuf, nueve, nove, negen, dziewięć, dokuz, nio, девять, تسعة, 九"),
	phraseList("10, ten, zehn, dix, diez, dieci, dez, tien, dziesięć, on, tio, десять, عشرة, 十"),
}

// letterNames are letters as speech recognition spells them in a name.
var letterNames = map[string]string{
	"bee": "b", "sea": "c", "see": "c", "dee": "d", "gee": "g", "jay": "j", "kay": "k", "ell": "l", "em": "m", "en": "n", "oh": "o",
	"pea": "p", "pee": "p", "queue": "q", "cue": "q", "are": "r", "ess": "s", "tea": "t", "tee": "t", "vee": "v", "ex": "x", "zee": "z", "zed": "z",
}

// homophones are English words that sound like a harmless one.
var homophones = map[string]string{
	"shore": "sure", "due": "do", "dew": "do", "coarse": "course", "write": "right", "rite": "right", "grate": "great", "buy": "by", "bye": "by",
	"aloud": "allowed", "ewe": "you", "pleas": "please", "guessed": "guest", "fore": "for", "thee": "the", "inn": "in",
	"sew": "so", "sow": "so", "wright": "right",
}

// respelled writes homophones as the word they sound like.
func respelled(tokens []string) []string {
	out := make([]string, len(tokens))
	for i, t := range tokens {
		out[i] = t
		if to, ok := homophones[t]; ok {
			out[i] = to
		}
	}
	return out
}

// fluent drops what a speaker began and said again: "ye yes", "go a go ahead", "the the".
func fluent(tokens []string) []string {
	out := make([]string, 0, len(tokens))
	for i := 0; i < len(tokens); i++ {
		if n := restarted(tokens[i:]); n > 0 {
			i += n - 1
			continue
		}
		out = append(out, tokens[i])
	}
	return out
}

// restarted is how many tokens at the front are the beginning of what follows them, at most two.
func restarted(tokens []string) int {
	for n := 1; n <= 2 && 2*n <= len(tokens); n++ {
		if startsWith(tokens[n:], tokens[:n-1]) && isBeginning(tokens[n-1], tokens[2*n-1]) {
			return n
		}
	}
	return 0
}

// isBeginning tells whether a word is the beginning of another one. Scripts without spaces have none.
func isBeginning(part, whole string) bool {
	return len(part) <= len(whole) && whole[:len(part)] == part && !isDense([]rune(part)[0])
}

// soundsLike tells whether speech recognition may have written a word of the question as another one:
// the same consonants, one letter more, less or other ("get" for "git").
func soundsLike(heard, word string) bool {
	if len(word) < 3 || loaded[heard] || consonants(heard) != consonants(word) || consonants(word) == "" {
		return false
	}
	short, long := heard, word
	if len(short) > len(long) {
		short, long = long, short
	}
	if len(long)-len(short) > 1 {
		return false
	}
	same := 0
	for same < len(short) && short[same] == long[same] {
		same++
	}
	if len(short) == len(long) {
		return same == len(short) || short[same+1:] == long[same+1:]
	}
	return short[same:] == long[same+1:]
}

// consonants are the letters of an English word that carry its sound; "" for anything else.
func consonants(word string) string {
	var out []byte
	for i := range len(word) {
		switch c := word[i]; {
		case c < 'a' || c > 'z':
			return ""
		case i > 0 && (c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u'):
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
