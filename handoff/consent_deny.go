package handoff

// denyWords deny in whatever language the rest of the reply is. Set once.
var denyWords = wordsByFirst(
	// English, with the forms of not that transcripts have
	`no, nope, nah, nay, noo, nuh, not, never, none, neither, nor, nothing, cannot, dont, don t, dont you, doesnt, doesn t, didnt, wont, won t, cant, can t, shouldnt, wouldnt, couldnt, mustnt, neednt, isnt, arent, wasnt, werent, hasnt, havent, hadnt, aint,
	stop, cancel, canceled, cancelled, abort, aborted, reject, rejected, deny, denied, decline, declined, refuse, refused, forbid, forbidden, disallow, disallowed, disapprove, prohibit, veto, negative, nevermind, skip, skip it, leave it, forget it, forget about, keep it, keep the, keep that, keep them, hands off, dead body, in your dreams, scrap that, scratch that, drop it, kill it, call it off, back off, block it, undo, revoke`,
	// German
	`nein, nee, nö, ne, nicht, nichts, nix, nie, niemals, kein, keine, keinen, keinesfalls, keineswegs, stopp, abbrechen, abbruch, ablehnen, abgelehnt, lehne, verboten, verweigern, verweigert, untersagt, lass das, lass mal, lass es sein, lass es bitte, lass es bleiben, lass es gut sein, lass die finger, lass sein, lassen sie das, vergiss es, bloß, aufhören, hör auf, ungern`,
	// French
	`non, nan, pas, jamais, aucun, aucune, rien, arrête, arrêtez, arrête toi, annule, annulez, annuler, refuse, refusé, refuser, refuses, rejette, interdit, laisse tomber, oublie, oubliez, nullement`,
	// Spanish, Portuguese, Italian
	`nunca, jamás, ni, nada, tampoco, ningún, ninguno, ninguna, cancela, cancelar, cancele, cancélalo, cancelado, rechaza, rechazo, rechazado, detente, detén, detenga, deténgase, alto, prohibido, déjalo, olvídalo, nel,
	não, nao, nem, jamais, nenhum, nenhuma, pare, parar, cancelado, recuse, recuso, recusar, recusado, nego, negado, negativo, proibido, deixa para lá, deixa pra lá, esquece,
	mai, niente, nulla, nessun, nessuno, nessuna, neanche, nemmeno, ferma, fermati, fermo, fermalo, fermare, annulla, annullare, annullalo, rifiuta, rifiuto, rifiutato, negato, vietato, lascia stare, lascia perdere, basta, smettila`,
	// Dutch, Swedish
	`neen, niet, niets, niks, geen, nooit, stoppen, annuleer, annuleren, weiger, weigeren, geweigerd, afgewezen, afwijzen, verboden, laat maar zitten, vergeet het, hou op, ophouden,
	nej, inte, aldrig, ingen, inget, icke, ej, stopp, stoppa, avbryt, avslå, avslag, neka, nekad, nekas, avböj, avböjer, vägra, vägrar, förbjudet, glöm det, strunta`,
	// Polish
	`nie, nigdy, żaden, żadnej, żadnym, stój, zatrzymaj, anuluj, odrzuć, odrzucam, odmawiam, odmowa, zabraniam, przestań, zostaw, zapomnij, wstrzymaj, bynajmniej, nic`,
	// Turkish; verbs are negated inside the word
	`hayır, yok, değil, olmaz, asla, hiç, yapma, yapmayın, yapmasın, çalıştırma, çalıştırmayın, etme, etmeyin, istemiyorum, istemem, onaylamıyorum, vermiyorum, kabul etmiyorum, durdur, dur, durun, iptal, vazgeç, vazgeçtim, reddet, reddediyorum, sakın, kalsın, boş ver, boşver, yasak`,
	// Russian
	`нет, не, неа, ни, никогда, нельзя, никак, ничего, стоп, стой, стойте, остановись, остановите, останови, отмена, отмени, отмените, отменить, отклони, отклонить, отклоняю, откажись, отказ, отказываю, отказываюсь, запрещаю, запрещено, хватит, прекрати, прекратите, брось, забудь, против, нету, отставить`,
	// Arabic
	`لا, ولا, لأ, ليس, ليست, لست, لن, لم, كلا, توقف, توقفي, قف, أوقف, أوقفه, ألغ, ألغي, ألغه, إلغاء, الغيها, أرفض, ارفض, رفض, مرفوض, مش, مو, ما أوافق, بلاش, أبدا, ممنوع, امنع, غير, بدون, خلاص, لاتفعل`,
	// Hindi, also in Latin letters
	`नहीं, नही, नहि, मत, ना, न, बंद, बंद करो, रद्द, मना, मना है, कभी नहीं, इनकार, अस्वीकार, अस्वीकृत, छोड़ो, छोड़ दो, रहने दो, nahi, nahin, nahee, mat karo, mana`,
	// Japanese
	`いいえ, いえ, いや, イヤ, 嫌, 嫌だ, だめ, 駄目, やめ, 止め, 辞め, よせ, 停止, 中止, ストップ, キャンセル, ない, 無い, なし, ません, ぬ, するな, やるな, 違, ちがう, ちがい, 拒否, 却下, 断, 結構, けっこう, 無理, むり, ううん, 取り消, 取消, 禁止, 不, 反対, なく`,
	// Chinese
	`不, 别, 別, 停, 否, 取消, 拒绝, 拒絕, 算了, 没有, 沒有, 没门, 勿, 莫, 甭, 住手, 免了, 免, 禁止, 反对, 反對, 驳回, 駁回, 休想, 撤销, 中止, 终止, 終止`,
	// Korean
	`아니, 아뇨, 안, 않, 하지 마, 하지 말, 하지마, 말아, 말고, 마세요, 마라, 싫, 취소, 멈, 그만, 중지, 중단, 거절, 거부, 못, 됐어, 됐습니다, 됐고, 금지, 절대, 반대, 노노, 없`,
)

// holdWords ask for time. They keep the question open, whatever else is said. Set once.
var holdWords = wordsByFirst(
	`wait, waiting, hold, hold on, hold off, holdup, hang on, hang, pause, later, moment, minute, second, sec, secs, tick, jiffy, yet, slow, slowly, whoa, careful, actually, think about, let me think, let me check, let me look, check first, tomorrow, afterwards, but, although, however, except, unless, until, before, maybe, perhaps, easy, hesitate, postpone, delay`,
	`warte, warten, wart, wartet, halt, moment, momentchen, augenblick, sekunde, minute, später, nachher, gleich, langsam, vorsicht, aber nur, vielleicht, erst, noch, gedulde, morgen, bevor, na ja, naja, nun ja, jein, jaja`,
	`attends, attendez, attendre, attend, instant, seconde, plus tard, doucement, minute, patiente, patientez, peut être, avant, tout à l'heure, bientôt, demain, sauf`,
	`espera, espere, espérate, aguanta, aguarda, aguarde, momento, momentito, minuto, minutito, segundo, segundito, después, más tarde, despacio, para, todavía, aún, quizá, quizás, tal vez, antes, mañana, pero, excepto, salvo, cuidado,
	calma, peraí, pera, espera aí, instante, minutinho, segundinho, depois, mais tarde, devagar, ainda, talvez, amanhã, porém, exceto, exceptuando,
	aspetta, aspetti, aspettate, attenda, attendi, attimo, un attimo, secondo, dopo, più tardi, piano, ancora, forse, domani, però, tranne, eccetto, fermi, un minuto, magari`,
	`wacht, wachten, nou ja, momentje, ogenblik, seconde, minuutje, straks, later, rustig, misschien, eerst, nog, morgen, tenzij, voordat,
	vänta, väntar, stanna, ett ögonblick, ögonblick, sekund, minut, senare, sakta, försiktigt, kanske, först, imorgon, men, innan, utom, avvakta, lugn`,
	`czekaj, poczekaj, zaczekaj, poczekajcie, chwila, chwilę, chwileczkę, moment, momencik, sekunda, sekundę, minutę, później, potem, powoli, ostrożnie, może później, być może, najpierw, jeszcze, jutro, ale, zanim, chyba`,
	`bekle, bekleyin, dakika, saniye, bir an, sonra, yavaş, henüz, belki, yarın, ama, fakat, ancak, dikkat`,
	`да ну, ну да ну да, подожди, подождите, погоди, погодите, обожди, ждите, жди, секунду, секундочку, минуту, минутку, минуточку, момент, моментик, потом, позже, попозже, рано, осторожно, тихо, может быть, наверное, возможно, сначала, сперва, завтра, но, пока, кроме, постой, постойте, притормози, еще`,
	`انتظر, انتظري, انتظروا, لحظة, لحظه, لحظات, دقيقة, ثانية, ثواني, مهلا, لاحقا, فيما بعد, بعدين, بعد, استنى, استني, ربما, يمكن, لكن, ولكن, قبل, أولا, غدا, بكرة, تمهل, اصبر`,
	`रुको, रुकिए, रुक, रुकना, रुकें, ठहरो, ठहरिए, ठहरें, एक मिनट, मिनट, सेकंड, क्षण, बाद, बाद में, शायद, पहले, लेकिन, मगर, पर अभी, कल, धीरे, इंतज़ार, थोड़ा, ruko, rukiye, thehro, baad mein, shayad, lekin`,
	`待, まって, まった, ちょっと, 少々, しばらく, 後で, あとで, あとに, まだ, 先に, たぶん, 多分, かも, でも, けど, もう少し, 一旦, いったん, タイム, ストップ`,
	`等, 慢, 稍, 暂, 暫, 待会, 待會, 以后, 以後, 回头, 先, 再说, 再說, 也许, 可能, 但, 除了, 明天, 晚点, 过会, 小心, 缓, 且慢, 一会`,
	`잠깐, 잠시, 기다, 나중, 천천히, 조금만, 아직, 아마, 먼저, 하지만, 근데, 내일, 이따, 스톱, 잠만, 있다가`,
)
