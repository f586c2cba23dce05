package consent

import (
	"strings"
	"sync"
)

// caseEndings are what languages write to a name for "on it", "to it" or "the", and shortEndings those for
// a name of three letters. Set once.
var (
	caseEndings  = setOf("de da te ta e a i u ye ya in nin un den dan en et n owi em ie u y om у а ом е ом і ові ем ку ку")
	shortEndings = setOf("de da te ta")
)

// translated are what people call a machine whose name is an ordinary word, in other languages and scripts,
// by its name in English. Set once.
var translated = sync.OnceValue(func() map[string][]string {
	table := map[string][]string{}
	for names, words := range map[string]string{
		"laptop notebook":           "laptop notebook ноутбук ноут лэптоп лептоп 笔记本 笔记本电脑 筆電 筆記型電腦 ラップトップ ノートパソコン ノートPC ノート 노트북 랩탑 랩톱 लैपटॉप نوتبوك لابتوب اللابتوب للابتوب لاب_توب محمول المحمول portátil portable ordinateur_portable ordenador_portátil dizüstü bärbara bärbara_datorn portatile",
		"desktop thedesktop":        "desktop десктоп 台式机 台式電腦 デスクトップ 데스크톱 데스크탑 डेस्कटॉप المكتبي ديسكتوب sobremesa escritorio fixe ordinateur_de_bureau masaüstü stationära stationära_datorn",
		"server":                    "server servidor serveur serwer сервер 服务器 伺服器 サーバー サーバ 서버 सर्वर خادم الخادم سيرفر السيرفر sunucu servern",
		"mini macmini themacmini":   "mini macmini мини міні мак_мини мак_міні 迷你 ミニ マックミニ 미니 맥미니 मिनी मैक_मिनी ميني الميني ماك_ميني الماك_ميني",
		"mac macbook":               "mac macbook мак макбук マック マックブック 맥 맥북 मैक मैकबुक ماك الماك ماكبوك",
		"bigpc":                     "bigpc gros_pc großer_pc großen_pc grote_pc pc_grande stordatorn stora_datorn duży_pc büyük_pc большой_комп великий_пк бигписи бигпк большой_пк бігпісі бігписі ビッグピーシー ビッグPC 빅피씨 빅피시 बिगपीसी बिग_पीसी بيغ_بي_سي بيج_بي_سي 大PC 大电脑",
		"workstation myworkstation": "workstation arbeitsrechner arbeitsstation 工作站 ワークステーション 워크스테이션 वर्कस्टेशन",
	} {
		for name := range strings.FieldsSeq(names) {
			for word := range strings.FieldsSeq(words) {
				if joined := strings.Join(hear(strings.ReplaceAll(word, "_", " ")).tokens, ""); joined != name {
					table[name] = append(table[name], joined)
				}
			}
		}
	}
	return table
})

// spokenActs are what recognisers write of a word of a command that is said in another language or misheard. Beside a
// yes they mean that word, in a question that has it. Set once.
var spokenActs = sync.OnceValue(func() map[string][]phrase {
	table := map[string][]phrase{}
	for name, forms := range map[string]string{
		"git":      "get kit гит ギット 깃 جيت गिट",
		"push":     "bush pusch пуш пушь プッシュ 푸시 푸쉬 بوش पुश",
		"origin":   "origen ориджин оріджин オリジン 오리진 اوريجين اوريجن ओरिजिन",
		"main":     "mane maine mayne мейн мэйн майн メイン 메인 على_مين मेन",
		"npm":      "and_pm mpm en_pm n_pm end_pm нпм энпиэм ен_пі_ем エヌピーエム 엔피엠 ان_بي_ام एनपीएम",
		"install":  "and_stall in_stall instal инстал инсталл інстал インストール 인스톨 انستول इंस्टॉल इंस्टाल",
		"pip":      "pipp pips пип піп ピップ 핍 بيب पिप",
		"requests": "request re_quests реквест реквестс реквестс リクエスツ リクエスト 리퀘스트 리퀘스츠 ريكويست ريكوستس रिक्वेस्ट रिक्वेस्ट्स",
		"test":     "тест テスト 테스트 تست टेस्ट",
		"commit":   "comet коммит комит コミット 커밋 커핏 كوميت कमिट",
		"merge":    "мердж マージ 머지 ميرج मर्ज",
		"build":    "билд ビルド 빌드 بيلد बिल्ड",
		"cart":     "card kart карт カート 카트 كارت कार्ट",
		"copy":     "копи копі コピー 카피 كوبي कॉपी",
		"session":  "сессия сесія セッション 세션 سيشن सेशन",
	} {
		for form := range strings.FieldsSeq(forms) {
			table[name] = append(table[name], words(hear(strings.ReplaceAll(form, "_", " ")).tokens...))
		}
	}
	return table
})
